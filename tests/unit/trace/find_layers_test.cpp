#include "trace/find_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tprimat::logs {
namespace {

// A trace of the processor with PyTorch's numbers.
struct Recording {
  Trace trace;
  std::vector<int64_t> sequences;

  void add(const std::string& name, int64_t begin, int64_t end, int64_t sequence = -1, uint32_t thread = 0) {
    HostEvent event;
    event.span = {begin, end};
    const auto known = std::find(trace.names.begin(), trace.names.end(), name);
    event.name = static_cast<uint32_t>(known - trace.names.begin());
    if (known == trace.names.end()) trace.names.push_back(name);
    event.thread = thread;
    event.kind = name.starts_with("nn.Module") ? HostEventKind::python : HostEventKind::operation;
    trace.host_events.push_back(event);
    sequences.push_back(sequence);
  }
  std::vector<int32_t> layers_of(const std::string& name) {
    find_layers(trace, sequences);
    std::vector<int32_t> layers;
    for (const HostEvent& event : trace.host_events)
      if (trace.names[event.name] == name) layers.push_back(event.layer);
    return layers;
  }
};

TEST(Layers, AreTheModulesThatTakeMostOfTheTime) {
  Recording made;
  made.add("nn.Module: Model_0", 0, 100);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const int64_t begin = 10 + layer * 20;
    made.add("nn.Module: Block_" + std::to_string(7 + layer), begin, begin + 20);
    made.add("nn.Module: Linear_" + std::to_string(layer), begin + 1, begin + 10);
    made.add("aten::linear", begin + 2, begin + 9, 100 + layer);
    made.add("autograd::engine::evaluate_function: AddmmBackward0", 200 - begin, 210 - begin, 100 + layer, 1);
    made.add("aten::mm", 201 - begin, 205 - begin, -1, 1);
  }
  made.add("aten::sum", 90, 95);
  EXPECT_EQ(made.layers_of("aten::linear"), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(made.layers_of("aten::mm"), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(made.layers_of("aten::sum"), (std::vector<int32_t>{-1}));
}

TEST(Layers, AreNoModulesWithinModulesOfTheirClass) {
  Recording made;
  made.add("nn.Module: Sequential_0", 0, 100);
  made.add("nn.Module: Sequential_1", 10, 90);
  for (int64_t layer = 0; layer < 2; ++layer) {
    made.add("nn.Module: Block_" + std::to_string(layer), 20 + layer * 30, 40 + layer * 30);
    made.add("aten::linear", 22 + layer * 30, 30 + layer * 30);
  }
  EXPECT_EQ(made.layers_of("aten::linear"), (std::vector<int32_t>{0, 1}));
}

TEST(Layers, AreSequencesThatRepeatWithinAStep) {
  Recording made;
  int64_t now = 0;
  const auto run = [&](const std::string& name) { made.add(name, now, now + 8), now += 10; };
  for (int step = 0; step < 2; ++step) {
    const int64_t begin = now;
    run("aten::embedding");
    for (int layer = 0; layer < 4; ++layer) run("norm"), run("query"), run("attention"), run("mlp");
    run("loss");
    for (int layer = 0; layer < 4; ++layer)
      for (const char* const name : {"Mlp", "Attention", "Norm"})
        run(std::string("autograd::engine::evaluate_function: ") + name);
    made.trace.marks.push_back({step, std::nullopt, {begin, now}});
  }
  EXPECT_EQ(made.layers_of("attention"), (std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(made.layers_of("autograd::engine::evaluate_function: Mlp"), (std::vector<int32_t>{3, 2, 1, 0, 3, 2, 1, 0}));
  EXPECT_EQ(made.layers_of("loss"), (std::vector<int32_t>{-1, -1}));
}

TEST(Layers, StayAsTheTraceStatesThem) {
  Recording made;
  for (int64_t i = 0; i < 12; ++i) made.add(std::string(1, static_cast<char>('a' + i % 3)), i * 10, i * 10 + 5);
  made.trace.host_events[0].layer = 5;
  EXPECT_EQ(made.layers_of("a"), (std::vector<int32_t>{5, -1, -1, -1}));
}

TEST(Repetitions, AreFoundWhereMostRepeats) {
  const Repetition found = find_repetition({9, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 8, 7});
  EXPECT_EQ(found.begin, 1u);
  EXPECT_EQ(found.period, 4u);
  EXPECT_EQ(found.count, 3u);
  EXPECT_EQ(find_repetition({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}).count, 0u);
  EXPECT_EQ(find_repetition({1, 2, 3, 1, 2, 3}).count, 0u);
  EXPECT_EQ(find_repetition({}).count, 0u);
}

}  // namespace
}  // namespace tprimat::logs

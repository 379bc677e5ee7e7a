#include <gtest/gtest.h>

#include "text/enum_names.h"
#include "trace/trace.h"

namespace tprimat::logs {
namespace {

// A trace of the processor, event by event.
struct Recording {
  Trace trace;

  void add(std::string name, int64_t begin, int64_t end, uint32_t thread = 0,
           HostEventKind kind = HostEventKind::operation) {
    HostEvent event;
    event.span = {begin, end};
    event.name = static_cast<uint32_t>(trace.names.size());
    event.thread = thread;
    event.kind = kind;
    trace.names.push_back(std::move(name));
    trace.host_events.push_back(event);
  }
  std::string phase(const std::string& name) {
    for (const HostEvent& event : trace.host_events)
      if (trace.names[event.name] == name) return std::string(enum_name(event.phase));
    return "missing";
  }
};

TEST(Phases, ComeFromNamesAndNesting) {
  Recording made;
  made.add("enumerate(DataLoader)#_Iter.__next__", 0, 9, 0, HostEventKind::annotation);
  made.add("aten::stack", 1, 8);
  made.add("aten::linear", 10, 20);
  made.add("aten::addmm", 12, 18);
  made.add("Optimizer.step#AdamW.step", 40, 60, 0, HostEventKind::annotation);
  made.add("aten::_foreach_add_", 42, 44);
  made.add("autograd::engine::evaluate_function: AddmmBackward0", 20, 38, 1);
  made.add("aten::mm", 22, 24, 1);
  made.add("c10d::allreduce_", 38, 39, 1);
  made.add("cudaLaunchKernel", 43, 44, 0, HostEventKind::runtime);
  find_phases(made.trace);
  EXPECT_EQ(made.phase("aten::stack"), "data");
  EXPECT_EQ(made.phase("aten::addmm"), "forward");
  EXPECT_EQ(made.phase("aten::_foreach_add_"), "optimizer");
  EXPECT_EQ(made.phase("cudaLaunchKernel"), "optimizer");
  EXPECT_EQ(made.phase("aten::mm"), "backward");
  EXPECT_EQ(made.phase("c10d::allreduce_"), "backward");
}

TEST(Phases, TellAForwardPassDoneAgainWithinTheBackwardPass) {
  Recording made;
  made.add("autograd::engine::evaluate_function: CheckpointFunctionBackward", 0, 100, 1);
  made.add("aten::linear", 10, 20, 1);
  made.add("aten::addmm", 12, 18, 1);
  made.add("autograd::engine::evaluate_function: AddmmBackward0", 30, 50, 1);
  made.add("aten::mm", 32, 40, 1);
  made.add("aten::mul", 60, 70, 1);
  made.trace.host_events.back().phase = Phase::forward;  // as Kineto's number of the forward thread says
  find_phases(made.trace);
  EXPECT_EQ(made.phase("aten::linear"), "recompute");
  EXPECT_EQ(made.phase("aten::addmm"), "recompute");
  EXPECT_EQ(made.phase("aten::mm"), "backward");
  EXPECT_EQ(made.phase("aten::mul"), "recompute");
}

TEST(Phases, KeepWhatTheTraceStates) {
  Recording made;
  made.add("attention", 0, 10);
  made.trace.host_events.back().phase = Phase::recompute;
  made.add("query", 2, 8);
  find_phases(made.trace);
  EXPECT_EQ(made.phase("attention"), "recompute");
  EXPECT_EQ(made.phase("query"), "recompute");
}

TEST(Phases, ReadRangesThatAProgramNames) {
  Recording made;
  made.add("## forward ##", 0, 10, 0, HostEventKind::annotation);
  made.add("## backward ##", 10, 20, 0, HostEventKind::annotation);
  made.add("aten::mm", 12, 15);
  find_phases(made.trace);
  EXPECT_EQ(made.phase("## forward ##"), "forward");
  EXPECT_EQ(made.phase("aten::mm"), "backward");
}

// Steps of `others` kernels that two pieces of an optimizer end, with `between` kernels between the pieces.
Trace kernels_of(int steps, int others, int between) {
  Trace trace;
  trace.names = {"gemm", "multi_tensor_apply_kernel<Adam>"};
  int64_t now = 0;
  const auto add = [&](uint32_t name, int count) {
    for (; count > 0; --count, now += 10) {
      GpuEvent event;
      event.span = {now, now + 9};
      event.name = name;
      trace.events.push_back(event);
    }
  };
  for (int step = 0; step < steps; ++step) add(0, others), add(1, 3), add(0, between), add(1, 2);
  return trace;
}

TEST(Steps, AreEndedByTheOptimizersKernels) {
  const std::vector<StepMark> steps = find_steps(kernels_of(5, 40, 4));
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0].step, 1);
  EXPECT_EQ(steps[0].device, 0);
  EXPECT_EQ(steps[0].span, (Span{0, 489}));
  EXPECT_EQ(steps[1].span, (Span{489, 979}));
  EXPECT_EQ(steps[4].span.end, 5 * 490 - 1);
}

TEST(Steps, LeaveOutWhatIsNotAlike) {
  Trace trace = kernels_of(5, 40, 0);
  trace.events.erase(trace.events.begin(), trace.events.begin() + 20);  // the recording began within a step
  EXPECT_EQ(find_steps(trace).size(), 4u);
  GpuEvent after = trace.events.back();  // and ended within one
  after.name = 0;
  for (int i = 0; i < 20; ++i) after.span.begin += 10, after.span.end += 10, trace.events.push_back(after);
  const auto steps = find_steps(trace);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps.back().span.end, 5 * 450 - 1);
}

TEST(Steps, AreNotMadeUp) {
  EXPECT_TRUE(find_steps(Trace{}).empty());
  EXPECT_TRUE(find_steps(kernels_of(1, 40, 0)).empty());
  EXPECT_TRUE(find_steps(kernels_of(50, 1, 0)).empty());
  Trace no_optimizer = kernels_of(5, 40, 0);
  no_optimizer.names[1] = "gemm2";
  EXPECT_TRUE(find_steps(no_optimizer).empty());
}

TEST(Steps, OfTheProcessorEndWithTheOptimizersRange) {
  Trace trace;
  trace.names = {"aten::mm", "Optimizer.step#AdamW.step"};
  for (int64_t i = 0; i < 45; ++i) {
    HostEvent event;
    event.span = {i * 10, i * 10 + 8};
    event.name = i % 15 == 14 ? 1 : 0;
    trace.host_events.push_back(event);
  }
  const auto steps = find_steps(trace);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_FALSE(steps[0].device.has_value());
  EXPECT_EQ(steps[2].span, (Span{298, 448}));
}

}  // namespace
}  // namespace tprimat::logs

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>
#include <string>

#include "base/files.h"
#include "example_data.h"
#include "trace/kernel_classes.h"
#include "trace/trace.h"

namespace tprimat::logs {
namespace {

// Traces of others, and facts of each that an independent script counted.
const std::filesystem::path k_folder = std::filesystem::path(TPRIMAT_SHARED_DATA) / "trace_pairs";

struct Amount {
  double milliseconds = 0.0;
  int64_t calls = 0;
};

// What the manifest says of one file.
struct Facts {
  std::string file, text;

  std::map<std::string, Amount> classes() const {
    static const std::map<std::string, std::string> k_ours = {
        {"gemm", "matmul"}, {"conv", "convolution"}, {"comm", "collective"}, {"reduce", "reduction"}};
    std::map<std::string, Amount> classes;
    const size_t begin = text.find("by class (ms/count): ");
    const std::string list = text.substr(begin, text.find(';', begin) - begin);
    const std::regex each("([a-z]+) ([0-9.]+)/([0-9]+)");
    for (std::sregex_iterator i(list.begin(), list.end(), each), end; i != end; ++i) {
      const auto ours = k_ours.find((*i)[1]);
      classes[ours == k_ours.end() ? (*i)[1].str() : ours->second] = {std::stod((*i)[2]), std::stoll((*i)[3])};
    }
    return classes;
  }
  // The number behind a text.
  double number(const std::string& before) const {
    const size_t at = text.find(before);
    return at == std::string::npos ? 0.0 : std::stod(text.substr(at + before.size()));
  }
  size_t steps() const { return static_cast<size_t>(number("steps ")); }
};

std::vector<Facts> all_facts() {
  std::vector<Facts> facts;
  std::ifstream manifest(k_folder / "MANIFEST.tsv");
  for (std::string line; std::getline(manifest, line);) {
    const std::string file = line.substr(0, line.find('\t'));
    if (file.ends_with(".json.gz") && line.find("by class (ms/count)") != std::string::npos)
      facts.push_back({file, line.substr(line.rfind('\t') + 1)});
  }
  return facts;
}

std::map<std::string, Amount> classes_of(const Trace& trace) {
  std::map<std::string, Amount> classes;
  for (const GpuEvent& event : trace.events) {
    if (event.kind != GpuEventKind::kernel) continue;
    Amount& amount = classes[std::string(enum_name(classify_kernel(trace.names[event.name])))];
    amount.milliseconds += static_cast<double>(event.span.length()) / 1e6;
    ++amount.calls;
  }
  return classes;
}

class TraceFacts : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_EXAMPLE_DATA(k_folder); }
};

TEST_F(TraceFacts, ClassesAreThoseCountedIndependently) {
  int files = 0;
  for (const Facts& facts : all_facts()) {
    const Trace trace = read_trace(k_folder / facts.file, TraceContent::everything);
    const auto ours = classes_of(trace);
    for (const auto& [name, wanted] : facts.classes()) {
      const auto found = ours.find(name);
      const double milliseconds = found == ours.end() ? 0.0 : found->second.milliseconds;
      const double steps = static_cast<double>(std::max<size_t>(facts.steps(), 1));
      EXPECT_NEAR(milliseconds, wanted.milliseconds, std::max(0.02 * wanted.milliseconds, 0.05 * steps))
          << facts.file << ": " << name;
      EXPECT_EQ(found == ours.end() ? 0 : found->second.calls, wanted.calls) << facts.file << ": " << name;
    }
    EXPECT_EQ(ours.size(), facts.classes().size()) << facts.file;
    ++files;
  }
  EXPECT_GE(files, 12);
}

TEST_F(TraceFacts, StepsWithoutMarksAreFound) {
  const Trace trace = read_trace(k_folder / "single/rocprofv3_mi350x_train_rank.json.gz", TraceContent::gpu);
  EXPECT_TRUE(trace.marks.empty());
  EXPECT_GE(find_steps(trace).size(), 49u);  // of 50; the first holds what came before it
}

TEST_F(TraceFacts, LaunchersAndCollectivesAreFound) {
  const Trace trace =
      read_trace(k_folder / "single/mi300x_ddp_resnet_actckpt_rank0of8.json.gz", TraceContent::everything);
  int64_t within = 0, launched = 0, collectives = 0;
  const int64_t begin = trace.marks.front().span.begin;
  for (const GpuEvent& event : trace.events) {
    if (event.launched < 0) continue;
    ++launched;
    within += event.launcher != k_none && event.launched >= begin && event.launched <= event.span.end ? 1 : 0;
    collectives += event.collective != k_none ? 1 : 0;
  }
  EXPECT_GT(launched, 2500);
  EXPECT_EQ(within, launched);
  EXPECT_EQ(collectives, 12);
  const CollectiveCall broadcast{"broadcast", "default_pg", 19200, 8};
  EXPECT_NE(std::find(trace.collectives.begin(), trace.collectives.end(), broadcast), trace.collectives.end());
}

TEST_F(TraceFacts, LayersAreThoseOfTheModel) {
  const std::map<std::string, int32_t> wanted = {{"tracelens_qwen05b/h100.json.gz", 24},
                                                 {"tracelens_qwen05b/mi300x.json.gz", 24},
                                                 {"single/mi300x_ddp_resnet_actckpt_rank0of8.json.gz", 8}};
  for (const auto& [file, layers] : wanted) {
    const Trace trace = read_trace(k_folder / file, TraceContent::everything);
    int32_t last = -1;
    for (const HostEvent& event : trace.host_events) last = std::max(last, event.layer);
    EXPECT_EQ(last + 1, layers) << file;
  }
}

TEST_F(TraceFacts, RecomputedOperationsAreTold) {
  Trace trace = read_trace(k_folder / "single/mi300x_ddp_resnet_actckpt_rank0of8.json.gz", TraceContent::everything);
  find_phases(trace);
  int64_t convolutions = 0, gradients = 0;
  for (const HostEvent& event : trace.host_events) {
    if (event.phase == Phase::recompute && trace.names[event.name] == "aten::conv2d") ++convolutions;
    if (event.phase == Phase::backward && trace.names[event.name] == "aten::convolution_backward") ++gradients;
  }
  EXPECT_EQ(convolutions, 57);
  EXPECT_EQ(gradients, 60);
}

}  // namespace
}  // namespace tprimat::logs

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "extract/to_result.h"
#include "result/result_file.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// A framework whose steps `run` reads from its log, and what its lines hold besides those of Megatron-LM.
struct LogOf {
  Framework framework;
  Platform platform;
  const char *checkout, *script;  // its key under `paths`, the file by which it is found
  const char* fields;             // at the end of each record
};

constexpr LogOf k_primus = {Framework::prim, Platform::amd, "primus", "examples/run_pretrain.sh",
                            " hip mem usage/free/total/usage_ratio: 71.00GB/121.00GB/192.00GB/36.98% "
                            "| rank-3 rocm max mem usage/usage_ratio: 75.00GB/39.06%"};
// As its torchtitan back end prints them: reserved and active memory.
constexpr LogOf k_primus_reserved = {Framework::prim, Platform::amd, "primus", "examples/run_pretrain.sh",
                                     " memory usage/free/total: 20.5GiB/18.0GiB/(10.7%) | mfu: 41.5%"};
constexpr LogOf k_megatron = {Framework::mega, Platform::nvd, "megatron", "pretrain_gpt.py",
                              " power per GPU (W/GPU): 612.5 | energy per GPU (J/iter/GPU): 306.2 |"};
constexpr LogOf k_deepspeed = {
    Framework::mgds, Platform::nvd, "megatron_deepspeed", "pretrain_gpt.py",
    " samples per second: 16.000 | tokens per gpu per second (tgs): 512.000 | TFLOPs: 1.50 |"};

std::string iteration(int step, const LogOf& log) {
  char line[512];
  std::snprintf(line, sizeof line,
                " [2026-01-02 03:04:%02d] iteration %8d/       6 | consumed samples: %12d | elapsed time per iteration "
                "(ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size:     8 "
                "| lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of skipped iterations:   0 | number of "
                "nan iterations:   0 |",
                step, step, step * 8, 500.0 + step, 400.0 + step, step * 1e-4, 10.0 - 0.5 * step, 1.0 + step);
  return line + std::string(log.fields) + "\n";
}

constexpr const char* k_memory =
    "[Rank 1] (after 1 iterations) memory (MB) | allocated: 1786.00 | max allocated: 2000.00 | reserved: 2200.00 | max "
    "reserved: 2300.00\n";
constexpr const char* k_checkpoint =
    "  successfully saved checkpoint from iteration       4 to /out/checkpoints [ t 1/1, p 1/1 ]\n";

std::string whole_log(const LogOf& log) {
  std::string text;
  for (int step = 1; step <= 6; ++step) {
    text += iteration(step, log);
    if (step == 1) text += k_memory;
    if (step == 4) text += k_checkpoint;
  }
  return text;
}

void write_program(const fs::path& path, const std::string& output) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "#!/bin/sh\ncat <<'END'\n" << output << "END\n";
  fs::permissions(path, fs::perms::owner_all);
}

class FollowedLog : public SuiteTest, public ::testing::WithParamInterface<LogOf> {
 protected:
  void SetUp() override {
    SuiteTest::SetUp();
    ::setenv("TPRIMAT_FRAMEWORKS", (output_ / "frameworks").c_str(), 1);
    experiment_.steps = 6;
    experiment_.global_batch_size = 8;
  }
  void TearDown() override {
    ::unsetenv("TPRIMAT_FRAMEWORKS");
    SuiteTest::TearDown();
  }

  RunResult run_printing(const LogOf& log, const std::string& text) {
    const fs::path checkout = output_ / "checkout";
    fs::create_directories(checkout / "primus");
    write_program(checkout / log.script, text);
    write_program(output_ / "frameworks" / enum_name(log.framework) / "bin/python", text);
    for (const char* ending : {".bin", ".idx"}) std::ofstream(output_ / (std::string("corpus") + ending)) << "tokens";
    experiment_.platforms = {{log.platform, {}}};
    experiment_.platforms[log.platform].device_model = log.platform == Platform::amd ? "MI300X" : "H100";
    experiment_.paths[std::string(log.checkout) + ".installation"] = checkout.string();
    request_.platform = log.platform;
    request_.frameworks = {log.framework};
    if (log.framework == Framework::mgds) request_.dataset = (output_ / "corpus").string();
    const SuiteReport report = run(plan_suite(experiment_, request_, machine_));
    return load_run_result(report.outcomes.at(0).result_path);
  }
};

// What both say about the steps. The log's own clock has no time zone, so a run states when it read a step.
Json figures_of(const RunResult& result) {
  Json json = run_result_to_json(result), figures = Json::object();
  for (const char* key : {"step_times", "loss_values", "learning_rates", "grad_norms", "memory_values", "reported",
                          "memory_metrics", "memory_by_rank", "steps", "events", "event_counts", "skipped_updates"})
    figures[key] = json.value(key, Json());
  figures["reported"].erase("unix_time");
  return figures;
}

TEST_P(FollowedLog, TheResultHasAllThatExtractFinds) {
  const RunResult result = run_printing(GetParam(), whole_log(GetParam()));
  EXPECT_EQ(result.status, RunStatus::complete) << result.status_reason.value_or("");
  const RunResult extracted = logs::make_result(logs::read_log(*result.source.log, {}), *result.source.log, {});
  const Json run = figures_of(result), log = figures_of(extracted);
  for (const auto& [key, value] : log.items()) EXPECT_EQ(print_json(run[key]), print_json(value)) << key;
  for (const std::string& warning : logs::read_log(*result.source.log, {}).log.notes)
    EXPECT_EQ(std::count(result.warnings.begin(), result.warnings.end(), warning), 1) << warning;
}
INSTANTIATE_TEST_SUITE_P(Frameworks, FollowedLog,
                         ::testing::Values(k_primus, k_primus_reserved, k_megatron, k_deepspeed));

TEST_F(FollowedLog, TheMemoryThatPrimusStatesIsInTheResult) {
  constexpr double k_gib = 1.073741824;  // GB
  const RunResult used = run_printing(k_primus, whole_log(k_primus));
  EXPECT_NEAR(used.memory_metrics.peak_device_used_gb.value(), 75 * k_gib, 1e-6);
  EXPECT_EQ(used.memory_metrics.measurement_method, "as the log reports it");
  ASSERT_TRUE(used.memory_by_rank);
  const RunResult reserved = run_printing(k_primus_reserved, whole_log(k_primus_reserved));
  EXPECT_NEAR(reserved.memory_metrics.peak_memory_reserved_gb.value(), 20.5 * k_gib, 1e-6);
  EXPECT_NEAR(reserved.reported->mfu->at(2), 0.415, 1e-9);
}

TEST_F(FollowedLog, AStepWithoutALineIsNoCompleteRun) {
  std::string text = whole_log(k_megatron);
  const size_t third = text.find("iteration        3/"), line = text.rfind('\n', third) + 1;
  text.erase(line, text.find('\n', third) + 1 - line);
  const RunResult result = run_printing(k_megatron, text);
  EXPECT_EQ(result.status, RunStatus::invalid);
  EXPECT_EQ(result.status_reason, "step 3 has no valid time");
}

TEST_F(FollowedLog, AnotherBatchThanAskedIsOtherWork) {
  experiment_.micro_batch_size = 1;
  std::string text = whole_log(k_megatron);
  for (size_t at = 0; (at = text.find("size:     8", at)) != std::string::npos;) text.replace(at, 11, "size:     4");
  const RunResult result = run_printing(k_megatron, text);
  EXPECT_EQ(result.status, RunStatus::invalid);
  EXPECT_EQ(result.status_reason, "step 1 trained on 128 tokens instead of 256");
}

TEST_F(FollowedLog, LossesThatAreNoNumbersAreCounted) {
  std::string text = whole_log(k_megatron);
  const size_t at = text.find("lm loss: ", text.find("iteration        4/"));
  text.replace(at, text.find('|', at) - at, "lm loss: NAN ");
  const RunResult result = run_printing(k_megatron, text);
  EXPECT_EQ(result.event_counts->at(EventKind::nan), 1);
  EXPECT_EQ(result.events->front().step, 4);
}

// What the allocator of a trainer with step records held.
TEST_F(SuiteTest, TheMemoryThatAnAllocatorHeldIsInTheResult) {
  SuitePlan suite = plan({});
  PlannedRun& run = suite.runs.at(0);
  run.plan.command = {"sh", "-c",
                      "for k in 1 2 3 4; do echo '{\"step\":'$k',\"time_seconds\":0.1,\"memory_allocated_gb\":1.5,"
                      "\"memory_reserved_gb\":'$k'}' >> \"$TPRIMAT_STEPS\"; done"};
  const SuiteReport report = SuiteTest::run(suite);
  const RunResult result = load_run_result(report.outcomes.at(0).result_path);
  EXPECT_DOUBLE_EQ(result.memory_metrics.peak_memory_reserved_gb.value(), 4.0);
  EXPECT_DOUBLE_EQ(result.memory_metrics.peak_memory_allocated_gb.value(), 1.5);
}

}  // namespace
}  // namespace tprimat::suite

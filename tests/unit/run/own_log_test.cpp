#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "result/result_file.h"
#include "run/config_audit.h"
#include "run/step_source.h"
#include "suite_fixture.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// Lines as Megatron-LM prints them.
std::string megatron_line(int step, double loss) {
  char line[512];
  std::snprintf(
      line, sizeof line,
      " [2026-01-02 03:04:%02d] iteration %8d/       4 | consumed samples: %12d | elapsed time per iteration "
      "(ms): 500.0 | throughput per GPU (TFLOP/s/GPU): 400.0 | learning rate: %.6E | global batch size:     8 "
      "| lm loss: %.6E | loss scale: 1.0 | grad norm: 1.250 | number of skipped iterations:   0 | number of nan "
      "iterations:   0 |\n",
      step, step, step * 8, step * 1e-4, loss);
  return line;
}

std::string megatron_arguments(const std::string& lr) {
  return "------------------------ arguments ------------------------\n"
         "  adam_beta2 ...................................... 0.95\n"
         "  global_batch_size ............................... 8\n"
         "  hidden_size ..................................... 64\n"
         "  lr .............................................. " +
         lr +
         "\n"
         "  num_layers ...................................... 2\n"
         "  seed ............................................ 42\n"
         "  train_iters ..................................... 4\n"
         "-------------------- end of arguments ---------------------\n";
}

class OwnLogTest : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  const std::string path_ = (fs::temp_directory_path() / ("own log " + std::to_string(::getpid()))).string();
};

TEST_F(OwnLogTest, StepsComeFromTheFrameworksOwnLines) {
  LogSteps steps(path_);
  steps.read_rest(1000.0);
  EXPECT_TRUE(steps.steps().empty());
  append(megatron_arguments("0.0004") + megatron_line(1, 10.0) + megatron_line(2, 9.5));
  steps.read_rest(1002.0);
  ASSERT_EQ(steps.steps().size(), 2u);
  append(megatron_line(3, 9.0) + megatron_line(4, std::nan("")));
  steps.read_rest(1003.0);
  ASSERT_EQ(steps.steps().size(), 4u);
  const StepRecord& second = steps.steps()[1];
  EXPECT_EQ(second.step, 2);
  EXPECT_DOUBLE_EQ(second.time_seconds, 0.5);
  EXPECT_DOUBLE_EQ(second.loss.value(), 9.5);
  EXPECT_DOUBLE_EQ(second.grad_norm.value(), 1.25);
  EXPECT_DOUBLE_EQ(second.unix_time.value(), 1002.0);
  EXPECT_DOUBLE_EQ(steps.steps()[0].unix_time.value(), 1001.5);
  EXPECT_DOUBLE_EQ(steps.steps()[2].unix_time.value(), 1002.5);
  EXPECT_TRUE(std::isnan(steps.steps()[3].loss.value()));
}

TEST_F(OwnLogTest, ReadingIsPausedBetweenTwoLooks) {
  append(megatron_line(1, 10.0));
  LogSteps steps(path_);
  EXPECT_FALSE(steps.read_new(1.0));  // too soon
  EXPECT_TRUE(steps.steps().empty());
}

TrainSpec asked() {
  TrainSpec spec;
  spec.model.num_layers = 2;
  spec.model.hidden_size = 64;
  spec.global_batch_size = 8;
  spec.steps = 4;
  spec.optimizer.learning_rate = 4e-4;
  return spec;
}

TEST_F(OwnLogTest, WhatRanAsAskedIsNoDifference) {
  append(megatron_arguments("0.0004") + megatron_line(1, 10.0));
  EXPECT_TRUE(audit_settings(asked(), read_log_beginning(path_).log).empty());
}

TEST_F(OwnLogTest, AnotherLearningRateIsFound) {
  append(megatron_arguments("0.0003") + megatron_line(1, 10.0));
  const auto differences = audit_settings(asked(), read_log_beginning(path_).log);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].key, "learning_rate");
  EXPECT_EQ(differences[0].asked, "0.0004");
  EXPECT_EQ(differences[0].effective, "0.0003");
}

TEST_F(OwnLogTest, SettingsThatAdaptersPrintAreRead) {
  append("setting learning_rate 0.0004\nsetting beta2 0.999\nsetting zero_stage 3\nsetting schedule linear\n");
  TrainSpec spec = asked();
  spec.parallel.data = 2;
  const auto differences = audit_settings(spec, read_log_beginning(path_).log);
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_EQ(differences[0].key, "schedule");
  EXPECT_EQ(differences[1].key, "beta2");
  EXPECT_EQ(differences[1].effective, "0.999");
  EXPECT_EQ(differences[2].key, "zero_stage");
}

TEST_F(OwnLogTest, Fp8OfMegatronDeepSpeedIsNotTakenForBf16) {
  append(
      "------------------------ arguments ------------------------\n"
      "  bf16 ............................................ True\n"
      "  fp8_hybrid ...................................... True\n"
      "-------------------- end of arguments ---------------------\n" +
      megatron_line(1, 10.0));
  TrainSpec spec = asked();
  spec.precision = Precision::fp8;
  EXPECT_TRUE(audit_settings(spec, read_log_beginning(path_).log).empty());
}

TEST_F(OwnLogTest, ExpertsAndTheirRoutingAreHeldAgainstThoseAsked) {
  append(
      "------------------------ arguments ------------------------\n"
      "  num_experts ..................................... 8\n"
      "  moe_router_topk ................................. 2\n"
      "  moe_router_force_load_balancing ................. True\n"
      "  expert_model_parallel_size ...................... 4\n"
      "-------------------- end of arguments ---------------------\n" +
      megatron_line(1, 10.0));
  TrainSpec spec = asked();
  spec.model.experts = Experts{.count = 8, .per_token = 2, .ffn_hidden_size = 64};
  spec.parallel.expert = 2;
  const auto differences = audit_settings(spec, read_log_beginning(path_).log);
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(differences[0].key, "expert_model_parallel_size");
  EXPECT_EQ(differences[0].effective, "4");
  EXPECT_EQ(differences[1].key, "routing");
  EXPECT_EQ(differences[1].asked, "learned");
  spec.parallel.expert = 4, spec.routing = Routing::balanced;
  EXPECT_TRUE(audit_settings(spec, read_log_beginning(path_).log).empty());
}

TEST_F(OwnLogTest, ALogThatIsNotThereSaysNothing) {
  EXPECT_TRUE(audit_settings(asked(), read_log_beginning("/nowhere/at all").log).empty());
}

// A checkout of Megatron-LM whose Python is a script that prints what Megatron-LM would.
class OwnLogSuite : public SuiteTest {
 protected:
  void SetUp() override {
    SuiteTest::SetUp();
    fs::create_directories(output_ / "checkout");
    std::ofstream(output_ / "checkout" / "pretrain_gpt.py") << "# not run\n";
    ::setenv("TPRIMAT_FRAMEWORKS", (output_ / "frameworks").c_str(), 1);
    experiment_.platforms[Platform::nvd] = {};
    experiment_.platforms[Platform::nvd].device_model = "H100";
    experiment_.paths["megatron.installation"] = (output_ / "checkout").string();
    experiment_.steps = 4;
    experiment_.global_batch_size = 8;
    experiment_.optimizer.learning_rate = 4e-4;
    experiment_.optimizer.schedule = ScheduleKind::cosine;
    request_.platform = Platform::nvd;
    request_.frameworks = {Framework::mega};
  }
  void TearDown() override {
    ::unsetenv("TPRIMAT_FRAMEWORKS");
    SuiteTest::TearDown();
  }

  RunResult run_printing(const std::string& text) {
    const fs::path python = output_ / "frameworks/mega/bin/python";
    fs::create_directories(python.parent_path());
    std::ofstream(python) << "#!/bin/sh\ncat <<'END'\n" << text << "END\n";
    fs::permissions(python, fs::perms::owner_all);
    const SuiteReport report = run(plan_suite(experiment_, request_, machine_));
    return load_run_result(report.outcomes.at(0).result_path);
  }
};

std::string four_steps() {
  return megatron_line(1, 10.0) + megatron_line(2, 9.5) + megatron_line(3, 9.0) + megatron_line(4, 8.5);
}

TEST_F(OwnLogSuite, AResultComesFromTheLogAlone) {
  const RunResult result = run_printing(megatron_arguments("0.0004") + four_steps());
  EXPECT_EQ(result.status, RunStatus::complete) << result.status_reason.value_or("");
  EXPECT_EQ(result.step_times, (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(result.loss_values, (std::vector<double>{10.0, 9.5, 9.0, 8.5}));
  EXPECT_EQ(result.source.format, "log");
  EXPECT_FALSE(result.source.steps_file);
  EXPECT_EQ(result.effective_config->at("lr"), "0.0004");
}

TEST_F(OwnLogSuite, WhatTheFrameworkDoesOtherwiseStandsInTheAudit) {
  const RunResult result = run_printing(megatron_arguments("0.0001") + four_steps());
  std::vector<std::string> keys;
  for (const AuditEntry& entry : result.config_audit) keys.push_back(entry.key);
  for (const char* key :
       {"schedule_timing", "dataset", "learning_rate"})  // its scheduler, its mock data, and what went wrong
    EXPECT_EQ(std::count(keys.begin(), keys.end(), key), 1) << key;
}

TEST_F(OwnLogSuite, ALogThatEndsEarlyIsNoCompleteRun) {
  const RunResult result = run_printing(megatron_line(1, 10.0) + megatron_line(2, 9.5));
  EXPECT_EQ(result.status, RunStatus::invalid);
}

}  // namespace
}  // namespace tprimat::suite

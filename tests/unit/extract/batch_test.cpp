// The batch that ran, and ends that were planned.
#include <gtest/gtest.h>

#include "attempt_logs.h"
#include "result/consistency.h"

namespace tprimat::logs {
namespace {

std::string steps_of_batch(int first, int last, int batch, int& samples) {
  std::string text;
  for (int step = first; step <= last; ++step) {
    const std::string line = attempt_steps(step, step, 100.0 * batch, batch);
    const size_t at = line.find("consumed samples: ") + 18;
    text += line.substr(0, at) + std::to_string(samples += batch) + line.substr(line.find(" |", at));
  }
  return text;
}

TEST(Batch, OfARampUpIsThatOfTheStepsThatCount) {
  int samples = 0;
  const std::string ramp = "  rampup_batch_size ............................... ['2', '2', '1000']\n";
  const RunResult result = result_of_attempts(attempt_dump(2, 2048, ramp.c_str()) + steps_of_batch(1, 30, 2, samples) +
                                              steps_of_batch(31, 100, 4, samples));
  EXPECT_EQ(result.training_config.global_batch_size, 4);
  EXPECT_NEAR(result.derived.tokens_per_second->value, 4 * 2048 / 0.401, 20);
  EXPECT_EQ(result.statistics->count, 69);
  EXPECT_TRUE(warns_of(result, "changes from 2 to 4"));
  EXPECT_FALSE(warns_of(result, "contradicts itself"));
  for (const Contradiction& each : find_contradictions(result))  // the dump says 8, to which the ramp leads
    ADD_FAILURE() << each.what << ": " << each.stated << ", " << each.derived;
}

TEST(Batch, OfRecordsThatLackItIsThatOfTheOthers) {
  int samples = 0;
  std::string first = steps_of_batch(1, 1, 8, samples);
  first.erase(first.find(" global batch size: 8 |"), 23);
  const RunResult result = result_of_attempts(attempt_dump(8, 2048) + first + steps_of_batch(2, 10, 8, samples) +
                                              steps_of_batch(11, 30, 16, samples));
  EXPECT_TRUE(warns_of(result, "changes from 8 to 16")) << fmt::format("{}", fmt::join(result.warnings, "\n"));
}

bool is_audited(const RunResult& result) {
  return std::any_of(result.config_audit.begin(), result.config_audit.end(),
                     [](const AuditEntry& each) { return each.key == "global_batch_size" && each.asked; });
}

// As Lightning writes a figure of its bar.
std::string bar_figure(int value) {
  std::string rounded = fmt::format("{:.3g}", static_cast<double>(value));
  if (const size_t exponent = rounded.find("e+0"); exponent != std::string::npos) rounded.erase(exponent + 2, 1);
  return value < 1000 ? fmt::format("{}.0", value) : rounded;
}

// `counted`: what the counter of samples adds at each step.
std::string nemo1_bars(int steps, int batch, int counted) {
  std::string bars;
  for (int step = 1; step <= steps; ++step)
    bars += fmt::format(
        "\rEpoch 0: :  50%|#####     | {}/{} [10:00<10:00, reduced_train_loss={:.4g}, global_step={}, "
        "consumed_samples={}, global_batch_size={}.0, train_step_timing in s=5.010]",
        step, steps, 9 - 1e-3 * step, bar_figure(step - 1), bar_figure(step * counted), batch);
  return bars + '\n';
}

TEST(Batch, CounterOfThreeDigitsIsReadOverManySteps) {
  for (const int steps : {20, 300, 5000}) {
    EXPECT_FALSE(is_audited(result_of_attempts(nemo1_bars(steps, 256, 256)))) << steps;
    EXPECT_TRUE(is_audited(result_of_attempts(nemo1_bars(steps, 256, 128)))) << steps;
  }
  const RunResult result = result_of_attempts(nemo1_bars(5000, 256, 256));
  EXPECT_EQ(result.step_times.size(), 5000);
  EXPECT_EQ(result.training_config.global_batch_size, 256);
}

TEST(Batch, ContradictionsWithholdTheVerdict) {
  int samples = 0;
  const RunResult records = result_of_attempts(attempt_dump(8, 2048) + steps_of_batch(1, 100, 4, samples));
  EXPECT_EQ(records.training_config.global_batch_size, 4);
  EXPECT_TRUE(is_audited(records));
  std::string halved = attempt_dump(8, 2048);
  for (int step = 1; step <= 100; ++step) {
    const std::string line = attempt_steps(step, step, 500);
    const size_t at = line.find("consumed samples: ") + 18;
    halved += line.substr(0, at) + std::to_string(step * 4) + line.substr(line.find(" |", at));
  }
  EXPECT_TRUE(is_audited(result_of_attempts(halved)));
  EXPECT_FALSE(is_audited(result_of_attempts(attempt_dump(8, 2048) + attempt_steps(1, 100, 500))));
}

TEST(PlannedEnd, IsComplete) {
  const std::string steps = attempt_steps(1, 40, 500);
  const std::string exit = "  exit_interval ............................... 40\n";
  const std::string word = "[exiting program at iteration 40] datetime: 2026-02-04 10:00:00\n";
  const RunResult planned = result_of_attempts(attempt_dump(8, 2048, exit.c_str()) + steps + word);
  EXPECT_EQ(planned.status, RunStatus::complete) << planned.status_reason.value_or("");
  EXPECT_EQ(planned.training_config.max_steps, 40);
  EXPECT_EQ(result_of_attempts(attempt_dump(8, 2048, exit.c_str()) + steps).status, RunStatus::invalid);
  EXPECT_EQ(result_of_attempts(attempt_dump(8, 2048) + steps + word).status, RunStatus::invalid);
}

}  // namespace
}  // namespace tprimat::logs

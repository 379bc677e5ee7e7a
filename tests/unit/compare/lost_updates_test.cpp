#include "result/validity.h"

#include <gtest/gtest.h>

#include "compare/audit.h"
#include "compare/compare_runs.h"
#include "sample_runs.h"

namespace tprimat::results {
namespace {

LoadedRun nvidia(double seconds = 1.0) { return sample_run("n.json", Platform::nvd, Framework::mega, seconds); }
LoadedRun amd(double seconds = 1.2) { return sample_run("a.json", Platform::amd, Framework::prim, seconds); }

Comparison compared(const LoadedRun& a, const LoadedRun& b) { return compare_runs({{a, b}, {}}, {}); }

bool has_finding(const std::vector<Finding>& findings, std::string_view code, Severity severity) {
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& each) { return each.code == code && each.severity == severity; });
}
bool shows(const Comparison& comparison, std::string_view code, Severity severity) {
  bool found = false;
  for (const Pair& pair : comparison.groups.at(0).pairs) found |= has_finding(pair.findings, code, severity);
  for (const Contender& each : comparison.groups.at(0).contenders) found |= has_finding(each.findings, code, severity);
  return found;
}
bool is_comparable(const Comparison& comparison) { return comparison.groups.at(0).pairs.at(0).comparable; }

void skip(LoadedRun& run, int64_t from, int64_t count) {
  run.result.skipped_updates = count;
  run.result.events.emplace();
  for (int64_t step = from; step < from + count; ++step)
    run.result.events->emplace_back().kind = EventKind::skipped_update, run.result.events->back().step = step;
  run = again(run);
}

TEST(SkippedUpdates, ARunThatSkipsThemAllIsInvalid) {
  LoadedRun run = nvidia();
  run.result.skipped_updates = 60;
  run = again(run);
  EXPECT_EQ(run.result.status, RunStatus::invalid);
  EXPECT_EQ(run.result.status_reason, "60 of 60 updates were skipped");
  EXPECT_FALSE(is_comparable(compared(amd(), run)));
}

TEST(SkippedUpdates, ManyWithholdTheVerdictAFewAreToldOf) {
  LoadedRun many = nvidia(), few = nvidia(), at_first = nvidia();
  skip(many, 20, 12);
  skip(few, 20, 1);
  skip(at_first, 1, 1);
  const Comparison with_many = compared(amd(), many), with_few = compared(amd(), few);
  EXPECT_TRUE(shows(with_many, "skipped_updates", Severity::error));
  EXPECT_FALSE(is_comparable(with_many));
  EXPECT_TRUE(shows(with_few, "some_skipped_updates", Severity::note));
  EXPECT_TRUE(is_comparable(with_few));
  EXPECT_EQ(count_skipped_updates(at_first.result).after_warmup, 0);
}

TEST(SkippedUpdates, AFallingLossScaleIsAWitness) {
  LoadedRun run = nvidia();
  run.result.reported.emplace().loss_scale.emplace(60, 65536.0);
  for (size_t i = 30; i < 40; ++i) (*run.result.reported->loss_scale)[i] = 65536.0 / std::pow(2.0, double(i - 29));
  EXPECT_EQ(count_skipped_updates(run.result).after_warmup, 10);
  EXPECT_FALSE(is_comparable(compared(amd(), again(run))));
}

TEST(SkippedUpdates, AFallBesideAReportedSkipIsThatSkip) {
  LoadedRun run = nvidia();
  run.result.reported.emplace().loss_scale.emplace(60, 65536.0);
  for (size_t i = 19; i < 60; ++i) (*run.result.reported->loss_scale)[i] = i < 39 ? 32768.0 : 16384.0;
  run.result.skipped_updates = 2;
  run.result.events.emplace();
  for (const int64_t step : {20, 40})
    run.result.events->emplace_back().kind = EventKind::skipped_update, run.result.events->back().step = step;
  EXPECT_EQ(count_skipped_updates(run.result).all, 2);
  EXPECT_TRUE(is_comparable(compared(amd(), again(run))));
}

TEST(SkippedUpdates, TheSearchForTheLossScaleIsNoLoss) {
  LoadedRun search = nvidia();
  search.result.precision = Precision::fp16;
  skip(search, 1, 5);
  EXPECT_EQ(count_skipped_updates(search.result).after_warmup, 0);
  search.result.precision = Precision::bf16;
  EXPECT_GT(count_skipped_updates(search.result).after_warmup, 0);
  LoadedRun endless = nvidia();
  endless.result.precision = Precision::fp16;
  skip(endless, 1, 20);
  EXPECT_GT(count_skipped_updates(endless.result).after_warmup, 16);
}

void lose_to_nan(LoadedRun& run, size_t from, size_t count) {
  run.result.events.emplace();
  run.result.grad_norms.assign(run.result.step_times.size(), 1.0);
  for (size_t i = from; i < from + count; ++i) {
    run.result.grad_norms[i] = std::nan("");
    run.result.events->emplace_back().kind = EventKind::nan,
    run.result.events->back().step = static_cast<int64_t>(i) + 1;
  }
  run = again(run);
}

TEST(SkippedUpdates, ANaNIsALostUpdate) {
  LoadedRun all = nvidia(), some = nvidia(), one = nvidia();
  lose_to_nan(all, 0, 60);
  EXPECT_EQ(all.result.status, RunStatus::invalid);
  EXPECT_EQ(all.result.status_reason, "the loss or the gradient is not a number at 60 of 60 reported steps");
  lose_to_nan(some, 20, 10);
  EXPECT_TRUE(shows(compared(amd(), some), "skipped_updates", Severity::error));
  EXPECT_FALSE(is_comparable(compared(amd(), some)));
  lose_to_nan(one, 20, 1);
  EXPECT_TRUE(is_comparable(compared(amd(), one)));
  one.result.events->clear();  // a figure that is missing is none
  EXPECT_EQ(count_skipped_updates(one.result).all, 0);
}

TEST(SkippedUpdates, ManyReportsOfOneNaNAreOneUpdate) {
  LoadedRun run = nvidia();
  run.result.events.emplace();
  for (int rank = 0; rank < 8; ++rank)
    run.result.events->emplace_back().kind = EventKind::nan, run.result.events->back().step = 30;
  run.result.event_counts = {{EventKind::nan, 8}};
  run = again(run);
  EXPECT_EQ(count_skipped_updates(run.result).all, 1);
  EXPECT_TRUE(is_comparable(compared(amd(), run)));
}

TEST(SkippedUpdates, AreHeldAgainstTheStepsThatAreRecorded) {
  LoadedRun run = nvidia();
  run.result.steps.emplace().numbers.emplace();
  for (int64_t step = 5001; step <= 5060; ++step) run.result.steps->numbers->push_back(step);
  skip(run, 5021, 40);
  EXPECT_EQ(run.result.status, RunStatus::invalid);
  EXPECT_EQ(run.result.status_reason, "40 of 60 updates were skipped");
}

TEST(SkippedUpdates, OfARecordOfSeveralStepsLieWhereTheRecordLies) {
  LoadedRun run = nvidia();
  run.result.steps.emplace().mean_of.emplace(60, 10);
  run.result.steps->numbers.emplace();
  for (int64_t i = 1; i <= 60; ++i) run.result.steps->numbers->push_back(10 * i);
  run.result.warmup.steps_excluded = 20;
  run.result.skipped_updates = 180;
  run.result.events.emplace();
  for (int64_t i = 31; i <= 50; ++i) {
    RunEvent& event = run.result.events->emplace_back();
    event.kind = EventKind::skipped_update, event.step = 10 * i, event.value = 9;
  }
  EXPECT_EQ(count_skipped_updates(run.result).all, 180);
  EXPECT_EQ(count_skipped_updates(run.result).after_warmup, 180);
}

TEST(SkippedUpdates, WhereNoneIsPlacedTheWarmUpMayHoldThem) {
  LoadedRun run = nvidia();
  run.result.warmup.steps_excluded = 5;
  run.result.skipped_updates = 7;
  EXPECT_EQ(count_skipped_updates(run.result).all, 7);
  EXPECT_EQ(count_skipped_updates(run.result).after_warmup, 2);
}

TEST(IdleOptimizer, WithoutALearningRateNothingWasTrained) {
  LoadedRun run = nvidia();
  run.result.learning_rates.assign(60, 0.0);
  const Comparison comparison = compared(amd(), again(run));
  EXPECT_TRUE(shows(comparison, "idle_optimizer", Severity::error));
  EXPECT_FALSE(is_comparable(comparison));
}

TEST(TrainableParameters, AdaptersAreNotComparedWithAFullTraining) {
  LoadedRun adapters = nvidia();
  adapters.result.model_info.trainable_parameters = 100'000;
  adapters = again(adapters);
  const Comparison comparison = compared(amd(), adapters);
  EXPECT_TRUE(shows(comparison, "trainable_parameters", Severity::error));
  EXPECT_FALSE(is_comparable(comparison));

  LoadedRun others = amd();
  others.result.model_info.trainable_parameters = 100'000;
  EXPECT_TRUE(is_comparable(compared(again(others), adapters)));
  others.result.model_info.trainable_parameters = 400'000;
  EXPECT_FALSE(is_comparable(compared(again(others), adapters)));
}

TEST(TrainableParameters, FrozenWeightsCostAThirdLess) {
  RunResult run = nvidia().result;
  summarise_run(run, {.peak = PeakInfo{"test", 1e15, "by hand"}});
  RunResult adapters = run;
  adapters.model_info.trainable_parameters = 100'000;
  summarise_run(adapters, stored_options(adapters));
  EXPECT_LT(adapters.derived.mfu->value, 0.75 * run.derived.mfu->value);
  EXPECT_GT(adapters.derived.mfu->value, 0.66 * run.derived.mfu->value);
}

TEST(TrainableParameters, PrintedSettingsAreAWitness) {
  LoadedRun adapters = nvidia();
  adapters.result.effective_config = {{"model.peft.lora_rank", "16"}, {"lora_alpha", "32"}};
  adapters = again(adapters);
  EXPECT_TRUE(adapters.result.derived.flops_per_token.empty());
  const Comparison comparison = compared(amd(), adapters);
  EXPECT_FALSE(is_comparable(comparison));
  EXPECT_TRUE(shows(comparison, "trainable_missing", Severity::warning));
  for (const auto& [key, value] : {std::pair{"lora_alpha", "32"}, std::pair{"lora.rank", "16"},
                                   std::pair{"lora_target_modules", "['q_proj']"}, std::pair{"freeze_layers", "24"}}) {
    LoadedRun each = nvidia();
    each.result.effective_config.emplace()[key] = value;
    EXPECT_FALSE(is_comparable(compared(amd(), again(each)))) << key;
  }
  for (const auto& [key, value] : {std::pair{"use_peft", "False"}, std::pair{"finetuning_type", "full"}}) {
    LoadedRun defaults = nvidia();
    defaults.result.effective_config = {{"lora_rank", "8"}, {"lora_alpha", "16"}};
    defaults.result.effective_config->emplace(key, value);
    EXPECT_TRUE(is_comparable(compared(amd(), again(defaults)))) << key;
  }
  LoadedRun off = nvidia();
  off.result.effective_config = {{"lora_rank", "0"}, {"use_peft", "False"}, {"peft_scheme", "none"}};
  EXPECT_TRUE(is_comparable(compared(amd(), again(off))));
}

}  // namespace
}  // namespace tprimat::results

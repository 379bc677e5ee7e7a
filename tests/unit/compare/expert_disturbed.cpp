#include <fmt/format.h>

#include <cmath>

#include "unit/compare/expert_pairs.h"

// The same work, though the records of it are odd: a slow step, a gap in the log, another tool's file. A rule that
// withholds these cries wolf.
namespace tprimat::results::expert {
namespace {

// The hour of each run stands in the place of {}.
Edit started(const std::string& form, int later) {
  return each_run([=](RunResult& r, int run) { r.timestamp = fmt::format(fmt::runtime(form), run + later); });
}

Edit bounded_by(double half) {
  return series([=](RunResult& r) {
    r.steps.emplace().time_low.emplace(), r.steps->time_high.emplace();
    for (const double time : r.step_times) {
      r.steps->time_low->push_back(time - half);
      r.steps->time_high->push_back(time + half);
    }
  });
}

std::vector<ExpertPair> pairs_with_slow_steps() {
  using enum Answer;
  return {
      {"CheckpointsLabelled", h100({steps(300)}), h100({steps(300), slow_every(100, 4, StepLabel::checkpoint)}), same,
       "the log says which steps hold a checkpoint: they are no training steps"},
      {"EvaluationsLabelled", h100({steps(120)}), h100({steps(120), slow_every(20, 3, StepLabel::evaluation)}), same,
       "the log says which steps hold an evaluation"},
      {"SlowStepsThatNobodyExplains", h100({steps(200)}), h100({steps(200), slow_every(25, 3, {})}), slower,
       "what is slow and unexplained is part of what the training costs", "outlier"},
      {"LongerWarmup", h100(), h100({[](Training& t) { t.slow_steps = 12; }}), same,
       "compiling longer is not the steady state, and both ends of it are detected"},
      {"FewSteps", h100({steps(15)}), mi300x({steps(15)}), faster, "little, but 20 % of three quiet runs", "few_steps"},
  };
}

std::vector<ExpertPair> pairs_with_coarse_logs() {
  using enum Answer;
  return {
      {"LogOfEveryTenthStep", h100({steps(300), logged_every(10)}), mi300x({steps(300), logged_every(10)}), faster,
       "30 lines of means a run"},
      {"LogOfEveryTenthStepAgainstEveryStep", h100({steps(300)}), mi300x({steps(300), logged_every(10)}), faster,
       "a mean of means is the mean"},
      {"LogThatRoundsToTenths", h100({steps(300), noisy(0.02, 0.001), rounded_to(0.1)}),
       h100({steps(300), noisy(0.02, 0.001), rounded_to(0.1)}), same,
       "few different times by rounding: no copies of each other"},
      {"LogThatRoundsToSeconds", h100({rounded_to(1)}), h100({rounded_to(1), speed(1.03)}), inconclusive,
       "8 s at every step of every run: that they agree is the printer's doing", "constant_times"},
      {"LogThatRoundsToSecondsAndSaysSo", h100({rounded_to(1), bounded_by(0.5)}),
       h100({rounded_to(1), bounded_by(0.5), speed(1.03)}), inconclusive,
       "each step lies within half a second of 8 s: 6 % either way", Codes({"constant_times", "rounded"})},
  };
}

std::vector<ExpertPair> pairs_with_averaged_times() {
  using enum Answer;
  const Edit averaged = series([](RunResult& r) {
    double sum = 0;
    for (const double time : r.step_times) sum += time;
    for (double& time : r.step_times) time = sum / 60;
  });
  return {
      {"OneAverageInThePlaceOfEachStep", h100({averaged}), h100({averaged, speed(1.03)}), faster,
       "three averages a side agree within 0.1 %, and each is of measured steps", "constant_times"},
      {"ClockWithPausesBetweenSteps", h100({with_clock(0.2)}), h100({with_clock(0.3)}), same,
       "logging and saving between steps make the clock run ahead of the step times: honest"},
      {"FixedWarmupOnOneSide", h100(), h100({facts([](RunResult& r) {
         r.warmup = {20, WarmupMethod::fixed, "the configuration leaves out 20 steps", true};
       })}),
       same, "the rest of both is steady", "warmup"},
  };
}

std::vector<ExpertPair> pairs_with_copied_runs() {
  using enum Answer;
  const auto digits = [](RunResult& r, int run) {
    for (double& time : r.step_times) time = run == 1 ? time : std::round(time * 1e3) / 1e3;
  };
  const auto shortened = [](RunResult& r, int run) {
    const auto kept = static_cast<size_t>(60 - 10 * (run - 1));
    for (auto* values : {&r.step_times, &r.loss_values, &r.learning_rates, &r.grad_norms}) values->resize(kept);
    r.training_config.max_steps.reset();
  };
  const auto bit_by_bit = [](RunResult&, int) {};
  return {
      {"OneRunCopiedToThree", h100({one_run_thrice(bit_by_bit)}), h100({one_run_thrice(bit_by_bit), speed(1.03)}),
       inconclusive, "one run each: 3 % is within what launches differ by", Codes({"copies", "few_runs"})},
      {"OneRunRoundedToThree", h100({one_run_thrice(digits)}), h100({one_run_thrice(digits), speed(1.03)}),
       inconclusive, "digits were dropped from copies of one run: 3 % is within what launches differ by",
       Codes({"copies", "few_runs"})},
      {"OneRunShortenedToThree", h100({one_run_thrice(shortened)}), h100({one_run_thrice(shortened), speed(1.03)}),
       inconclusive, "the shorter files are the beginning of the longest: 3 % is within what launches differ by",
       Codes({"copies", "few_runs"})},
  };
}

Edit throttled() {
  return facts([](RunResult& r) {
    TelemetrySummary nvml;
    nvml.source = "nvml";
    nvml.samples = 400;
    nvml.throttle_shares = {{"thermal", 0.4}};
    r.telemetry = {nvml};
  });
}

std::vector<ExpertPair> pairs_with_odd_runs() {
  using enum Answer;
  const auto scatter = each_run([](RunResult& r, int run) {
    for (double& time : r.step_times) time *= 1 + 0.1 * (run - 2);
  });
  return {
      {"RepetitionsThatScatter", h100(), h100({scatter, speed(1.05)}), inconclusive,
       "one side's runs differ by 20 %: whose speed is it", "runs_disagree"},
      {"RepetitionsOnTheirOwnNodes",
       h100({each_run([](RunResult& r, int run) { r.environment["hostname"] = "node" + std::to_string(run); })}),
       mi300x({each_run([](RunResult& r, int run) { r.environment["hostname"] = "gpu" + std::to_string(run); })}),
       faster, "a node is luck, which repetitions measure"},
      {"ThrottledDevice", h100(), h100({speed(0.9), throttled()}), slower,
       "it is what that machine does; why stands beside it", "throttled"},
  };
}

std::vector<ExpertPair> pairs_with_few_skipped_updates() {
  using enum Answer;
  return {
      {"OneUpdateOfAHundredSkipped", h100({steps(100), skipped_updates(1)}), h100({steps(100), skipped_updates(1)}),
       same, "the loss scale finds its place: that is how such trainings start"},
      {"OneUpdateSkippedAgainstNone", h100({steps(100), skipped_updates(0)}), h100({steps(100), skipped_updates(1)}),
       same, "one update of a hundred changes neither the work nor the training"},
      {"NobodyCountedSkippedUpdates", h100({steps(100)}), h100({steps(100), skipped_updates(1)}), same,
       "most logs do not count them"},
      {"Fp16SearchesItsLossScale", h100({facts([](RunResult& r) { r.precision = Precision::fp16; })}),
       h100({facts([](RunResult& r) { r.precision = Precision::fp16; }), skipped_updates(10)}), same,
       "2^32 is halved until the gradients fit, in the first steps one after the other"},
  };
}

std::vector<ExpertPair> pairs_with_gaps() {
  using enum Answer;
  return {
      {"NoLossOnOneSide", h100(), mi300x({no_loss()}), faster,
       "the work is the same as far as it is known; that it learns is not", "loss_missing"},
      {"NoLearningRateOnOneSide", h100(), mi300x({no_learning_rates()}), faster, "what was asked for agrees"},
      {"PrecisionNotPrinted", h100(), h100({speed(1.2), series([](RunResult& r) { r.precision.reset(); })}), faster,
       "nothing contradicts, but FP8 is not ruled out: a warning", "precision_missing"},
      {"MemoryByAnotherTool", h100(), mi300x({facts([](RunResult& r) {
         r.memory_metrics = {};
         r.memory_metrics.peak_device_used_gb = 131.0;
         r.memory_metrics.measurement_method = "rocm-smi";
       })}),
       faster, "memory is not compared; speed is", "memory_meaning"},
  };
}

std::vector<ExpertPair> pairs_with_unlike_accounts() {
  using enum Answer;
  return {
      {"PowerByOtherCounters", h100({power(5200, "nvml")}), mi300x({power(5600, "amd_smi")}), faster,
       "each vendor's own counters: no reason to doubt the rates"},
      {"PriceOfOneSide", h100({price(24)}), mi300x(), faster, "cost is not compared; speed is"},
      {"PriceOfEachDevice", h100({price(24)}), mi300x({price(16)}), faster, "other devices have other prices"},
      {"TimeStampsOfTwoZones", h100({started("2026-03-02T0{}:00:00Z", 0)}),
       h100({started("2026-03-02T0{}:00:00+02:00", 2)}), same,
       "when runs took place is no work, and two machines may start at one time"},
  };
}

Edit tokens_instead_of_batch() {
  return series([](RunResult& r) {
    r.training_config.tokens_per_step = 128 * 4096;
    r.training_config.global_batch_size.reset();
  });
}

std::vector<ExpertPair> pairs_of_older_files() {
  using enum Answer;
  return {
      {"OlderFiles", h100({older_file()}), mi300x({older_file()}), faster,
       "what scripts wrote before there was a schema tells batch, length, devices and times; the model by its name "
       "alone",
       Codes({"precision_missing", "shape_missing", "model_not_shown"})},
      {"OlderFileAgainstAnother", h100(), mi300x({older_file()}), faster,
       "nothing that both tell contradicts; the model is one by its name alone",
       Codes({"precision_missing", "shape_missing", "model_not_shown"})},
      {"AveragesOnly", h100({averages_only()}), mi300x({averages_only()}), inconclusive,
       "a mean without its steps has no noise to judge it by",
       Codes({"precision_missing", "shape_missing", "model_not_shown"})},
      {"TokensOfAStepInsteadOfItsBatch", h100({tokens_instead_of_batch()}), mi300x({tokens_instead_of_batch()}), faster,
       "tokens over time need no batch"},
  };
}

}  // namespace

std::vector<ExpertPair> disturbed_pairs() {
  return joined<ExpertPair>({pairs_with_slow_steps(), pairs_with_coarse_logs(), pairs_with_averaged_times(),
                             pairs_with_copied_runs(), pairs_with_odd_runs(), pairs_with_few_skipped_updates(),
                             pairs_with_gaps(), pairs_with_unlike_accounts(), pairs_of_older_files()});
}

}  // namespace tprimat::results::expert

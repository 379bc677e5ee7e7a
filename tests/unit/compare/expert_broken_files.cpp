#include <cmath>
#include <limits>

#include "unit/compare/expert_pairs.h"

// Files that cannot be true, are not of a whole run, or are not of a run of their own: no verdict.
namespace tprimat::results::expert {
namespace {

constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();

std::vector<ExpertPair> pairs_with_other_batches() {
  using enum Answer;
  return {
      {"BatchOfOtherMicroBatches", h100(),
       h100({speed(1.36), facts([](RunResult& r) { r.parallelism_config.gradient_accumulation_steps = 8; })}), withheld,
       "2 x 4 x 8 sequences are 64, not 128: the rate may be twice the true one", "layout_contradiction"},
      {"TokensOfAStepDenied", h100(), h100({facts([](RunResult& r) { r.training_config.tokens_per_step = 262'144; })}),
       withheld, "128 x 4096 tokens are not 262144",
       Codes({"layout_contradiction", "rate_contradiction", "effective_work"})},
      {"OtherBatchEffective", h100(), h100({facts([](RunResult& r) {
         r.config_audit.push_back({"global_batch_size", "128", "64"});
       })}),
       withheld, "the framework says that it did half of the work", "effective_work"},
  };
}

std::vector<ExpertPair> pairs_with_other_device_counts() {
  using enum Answer;
  return {
      {"RanksThatAreNoDevices", h100(), h100({facts([](RunResult& r) {
         r.parallelism_config.data_parallel_size = 8;
         r.parallelism_config.gradient_accumulation_steps = 8;
       })}),
       withheld, "2 x 8 ranks on 8 devices: the rate per device is in doubt", "layout_contradiction"},
      {"TwoDeviceCounts", h100(), h100({facts([](RunResult& r) { r.gpu_info.device_count = 16; })}), withheld,
       "8 or 16 devices: the rate per device is in doubt by two", "device_counts"},
      {"RanksThatAreNoDevicesOfTheMachine", h100(), h100({series([](RunResult& r) {
         r.training_config.num_gpus.reset();
         r.gpu_info.device_count = 4;
       })}),
       withheld, "2 x 4 ranks on 4 devices: the rate per device may be half of what it says", "layout_contradiction"},
  };
}

Edit times_rounded() {
  return series([](RunResult& r) {
    for (double& time : r.step_times) time = std::round(time * 1e3) / 1e3;
  });
}

Edit shortened(size_t kept) {
  return series([=](RunResult& r) {
    for (auto* values : {&r.step_times, &r.loss_values, &r.learning_rates, &r.grad_norms}) values->resize(kept);
    r.training_config.max_steps.reset();
  });
}

Edit beginning_cut(ptrdiff_t cut) {
  return series([=](RunResult& r) {
    for (auto* values : {&r.step_times, &r.grad_norms}) values->erase(values->begin(), values->begin() + cut);
    r.loss_values.clear(), r.learning_rates.clear();
    r.training_config.max_steps.reset();
  });
}

std::vector<ExpertPair> pairs_of_copies() {
  using enum Answer;
  const Edit as_h200 = device("NVIDIA H200");
  return {
      {"Copy", h100(), h100({copy_of_reference()}), withheld, "one run against itself", "same_measurement"},
      {"CopyAsAnotherDevice", h100(), h100({copy_of_reference(), as_h200}), withheld,
       "no other device takes the same microseconds step by step", "same_measurement"},
      {"RoundedCopy", h100(), h100({copy_of_reference(), times_rounded(), as_h200}), withheld,
       "the same microseconds, to three digits", "same_measurement"},
      {"ShortenedCopy", h100(), h100({copy_of_reference(), shortened(45)}), withheld,
       "the first 45 of the same 60 steps", "same_measurement"},
      {"CopyWithoutItsBeginning", h100(), h100({copy_of_reference(), beginning_cut(10)}), withheld,
       "the last 50 of the same 60 steps", "same_measurement"},
      {"CopyOfOneRepetition", h100(), h100({runs(1), copy_of_reference(), as_h200}), withheld,
       "the one run of a side is among the other's three", "same_measurement"},
  };
}

std::vector<ExpertPair> pairs_of_broken_runs() {
  using enum Answer;
  const auto ends = [](RunStatus status, const char* reason, FailureKind kind) {
    return last_run([=](RunResult& r) { r.status = status, r.status_reason = reason, r.failure_kind = kind; });
  };
  return {
      {"HalfOfTheSteps", h100(), h100({training([](TrainingConfig& c) { c.max_steps = 120; })}), withheld,
       "60 of 120 steps: nobody knows what the rest was", "status"},
      {"OutOfMemoryInTheLastRun", h100(), h100({ends(RunStatus::failed, "out of memory", FailureKind::out_of_memory)}),
       withheld, "a configuration that dies in one run of three is no contender", "status"},
      {"Interrupted", h100(), h100({ends(RunStatus::interrupted, "by the user", FailureKind::killed)}), withheld,
       "half of a run", "status"},
      {"LossIsNoNumber", h100(), h100({loss_from(40, [](double, int64_t) { return k_nan; })}), withheld,
       "nothing is trained from step 40 on", "status"},
      {"StepWithoutATime", h100(), h100({series([](RunResult& r) { r.step_times[30] = 0; })}), withheld,
       "no step takes no time", "status"},
      {"NegativeStep", h100(), h100({series([](RunResult& r) { r.step_times[30] = -7.9; })}), withheld,
       "a clock that ran backwards", "status"},
  };
}

std::vector<ExpertPair> pairs_of_false_times() {
  using enum Answer;
  return {
      {"FasterThanThePeak", h100(), h100({speed(3.25)}), withheld, "130 % MFU", Codes({"status", "impossible"})},
      {"MillisecondsAsSeconds", h100(), h100({series([](RunResult& r) {
         for (double& time : r.step_times) time *= 1000;
       })}),
       withheld, "two hours for a step at 0.04 % MFU: the times are milliseconds", "impossible_time"},
      {"ClockDeniesShortSteps", h100({with_clock(0)}), h100({speed(1.5), with_clock(0, 2.5)}), withheld,
       "the log's own time stamps lie two and a half times as far apart as the steps are said to take",
       "clock_contradiction"},
      {"ClockDeniesLongSteps", h100({speed(0.5), with_clock(0, 0.5)}), h100({with_clock(0)}), withheld,
       "the baseline's steps are said to take twice the time that passed", "clock_contradiction"},
  };
}

std::vector<ExpertPair> pairs_of_edited_files() {
  using enum Answer;
  return {
      {"RateThatWasTypedIn", h100(), h100({file([](Json& json) {
         for (const char* rate : {"tokens_per_second", "tokens_per_second_per_gpu"})
           json["derived"][rate]["value"] = json["derived"][rate]["value"].get<double>() * 1.2;
       })}),
       withheld, "the rate does not follow from the steps", "rate_contradiction"},
      {"BatchThatWasTypedIn", h100(),
       h100({file([](Json& json) { json["training_config"]["global_batch_size"] = 160; })}), withheld,
       "neither rate nor layout follows from that batch", "rate_contradiction"},
      {"StepsThatWereTypedIn", h100(), h100({file([](Json& json) {
         for (auto& time : json["step_times"]) time = time.get<double>() * 0.8;
       })}),
       withheld, "mean, median and rate are of other steps", "rate_contradiction"},
      {"OlderFileWithAnotherBatch", h100(),
       h100({older_file(), file([](Json& json) { json["training_config"]["global_batch_size"] = 64; })}), withheld,
       "its rate and its mean step time give twice the tokens of its batch",
       Codes({"effective_work", "rate_contradiction"})},
  };
}

std::vector<ExpertPair> pairs_of_foreign_devices() {
  using enum Answer;
  return {
      {"ForeignDevice", h100(), h100({device("AMD Instinct MI300X")}), withheld, "AMD's device on NVIDIA's platform",
       "foreign_device"},
      {"ForeignStack", h100(), mi300x({facts([](RunResult& r) { r.gpu_info.software_stack = "cuda"; })}), withheld,
       "CUDA on AMD's device", "foreign_device"},
  };
}

std::vector<ExpertPair> pairs_with_missing_facts() {
  using enum Answer;
  return {
      {"ModelIsNotNamed", h100({facts([](RunResult& r) { r.model_info.name.clear(); })}),
       h100({facts([](RunResult& r) { r.model_info.name.clear(); })}), withheld, "who knows what was trained",
       "model_missing"},
      {"NoBatchAndNoLength", h100(), h100({series([](RunResult& r) {
         r.training_config.global_batch_size.reset();
         r.training_config.sequence_length.reset();
       })}),
       withheld, "steps of unknown work have no rate", "rate_missing"},
      {"NoDeviceCount", h100(), h100({series([](RunResult& r) {
         r.training_config.num_gpus.reset();
         r.gpu_info.device_count.reset();
       })}),
       withheld, "no rate per device without devices", "rate_missing"},
  };
}

}  // namespace

std::vector<ExpertPair> broken_file_pairs() {
  return joined<ExpertPair>({pairs_with_other_batches(), pairs_with_other_device_counts(), pairs_of_copies(),
                             pairs_of_broken_runs(), pairs_of_false_times(), pairs_of_edited_files(),
                             pairs_of_foreign_devices(), pairs_with_missing_facts()});
}

}  // namespace tprimat::results::expert

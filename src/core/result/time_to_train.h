#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "text/fields.h"

namespace tprimat {

// A training that runs until the model reaches a target quality, as MLPerf's trainings do.
struct TimeToTrain {
  std::optional<std::string> benchmark, division, status;
  std::optional<double> seconds;
  std::optional<int64_t> samples;
  std::optional<double> samples_per_second;
  std::optional<int64_t> eval_samples;
  std::optional<double> target_quality, reached_quality;
  std::optional<bool> higher_is_better;
  std::optional<std::string> target_source;

  bool is_success() const { return status == "success"; }
  bool has_time() const { return seconds.value_or(0) > 0; }
  bool counts() const { return is_success() && has_time(); }  // an aborted run did not reach its target

  static constexpr auto fields() {
    using T = TimeToTrain;
    return field_list(
        field("benchmark", &T::benchmark, "name of the benchmark, such as llama2_70b_lora"),
        field("division", &T::division, "closed or open: the rules that the training follows"),
        field("status", &T::status, "success if the target was reached; aborted; absent: the log ends before the stop"),
        field("seconds", &T::seconds, "from run_start to run_stop, evaluations included, s"),
        field("samples", &T::samples, "samples trained on from run_start to run_stop"),
        field("samples_per_second", &T::samples_per_second,
              "these samples / time between block_start and block_stop, so without evaluations"),
        field("eval_samples", &T::eval_samples, "samples of one evaluation"),
        field("target_quality", &T::target_quality, "quality at which the training ends"),
        field("reached_quality", &T::reached_quality, "last quality evaluated before run_stop"),
        field("higher_is_better", &T::higher_is_better, "an accuracy rises to its target, a loss falls to it"),
        field("target_source", &T::target_source,
              "log: the log states the target; rules: those of the closed division"));
  }
};

}  // namespace tprimat

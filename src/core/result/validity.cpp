#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "result/lost_updates.h"
#include "result/summary.h"

namespace tprimat {
namespace {

void condemn(RunResult& result, FailureKind kind, std::string reason, RunStatus status = RunStatus::invalid) {
  if (result.status != RunStatus::complete) return;
  result.status = status;
  result.status_reason = std::move(reason);
  result.failure_kind = kind;
}

// A log may not tell every step's time: then less is known, but what is known stays true.
void check_extracted_times(RunResult& result) {
  const auto missing = std::count_if(result.step_times.begin(), result.step_times.end(),
                                     [](double seconds) { return !is_valid_step_time(seconds); });
  if (missing == std::ssize(result.step_times))
    add_warning(result, "the log tells no step times");
  else if (missing > 0)
    add_warning(result, fmt::format("the log tells no time for {} of {} steps", missing, result.step_times.size()));
}

// A log that reports every tenth step says nothing of the last nine.
int64_t report_interval(const RunResult& result) {
  if (!result.steps || !result.steps->mean_of || result.steps->mean_of->empty()) return 1;
  return std::max<int64_t>(1, result.steps->mean_of->back());
}

void check_steps(RunResult& result) {
  const auto steps = steps_reached(result);
  const auto asked = result.training_config.max_steps;
  if (result.step_times.empty()) {
    if (!result.derived.tokens_per_second)
      condemn(result, FailureKind::steps_missing, "no step was recorded", RunStatus::failed);
    return;
  }
  if (asked && *asked - steps >= report_interval(result))
    condemn(result, FailureKind::steps_missing, fmt::format("stopped after step {} of {}", steps, *asked));
  if (asked && steps > *asked)
    add_warning(result, fmt::format("{} steps recorded where {} were asked for", steps, *asked));
  if (result.steps) return check_extracted_times(result);
  const auto bad = std::find_if(result.step_times.begin(), result.step_times.end(),
                                [](double seconds) { return !is_valid_step_time(seconds); });
  if (bad != result.step_times.end())
    condemn(result, FailureKind::wrong_work,
            fmt::format("step {} has no valid time", bad - result.step_times.begin() + 1));
}

// A logger that speaks every k steps leaves gaps; a loss that went NaN never comes back. So NaNs at the end that are
// longer than every gap before them are a NaN loss.
void check_losses(RunResult& result) {
  const std::vector<double>& losses = result.loss_values;
  if (losses.empty()) return;
  size_t gap = 0, longest_gap = 0, missing = 0;
  for (const double loss : losses) {
    if (std::isinf(loss)) return condemn(result, FailureKind::nan_loss, "the loss is infinite");
    missing += std::isnan(loss);
    if (!std::isnan(loss)) longest_gap = std::max(longest_gap, gap);
    gap = std::isnan(loss) ? gap + 1 : 0;
  }
  if (gap > longest_gap)
    condemn(result, FailureKind::nan_loss,
            fmt::format("the loss is not a number from step {} on", step_number(result, losses.size() - gap)));
  else if (missing > 0 && count_skipped_updates(result).nan == 0)
    add_warning(result, fmt::format("the loss is missing at {} of {} steps", missing, losses.size()));
}

// A run that loses more than half of its updates does not train, whatever its loss.
void check_updates(RunResult& result) {
  const SkippedUpdates skipped = count_skipped_updates(result);
  const int64_t entries = std::ssize(result.step_times);
  const std::string nans =
      fmt::format("the loss or the gradient is not a number at {} of {} reported steps", skipped.nan, entries);
  if (skipped.nan > 0) add_warning(result, nans + ": these updates are lost");
  if (2 * skipped.nan > entries)
    condemn(result, FailureKind::nan_loss, nans);
  else if (2 * skipped.all > skipped.steps)
    condemn(result, FailureKind::wrong_work, fmt::format("{} of {} updates were skipped", skipped.all, skipped.steps));
}

void check_length(RunResult& result, size_t length, const char* what) {
  const size_t steps = result.step_times.size();
  if (length == 0 || steps == 0 || length == steps) return;
  add_warning(result,
              fmt::format("{} {} for {} steps: which step lacks one is not known, so the series may be off by {}",
                          length, what, steps, length > steps ? length - steps : steps - length));
}

}  // namespace

int64_t steps_reached(const RunResult& result) {
  if (result.step_times.empty()) return 0;
  const int64_t last = step_number(result, result.step_times.size() - 1);
  return result.steps ? last + 1 - result.steps->counts_from : last;
}

void add_warning(RunResult& result, const std::string& sentence) {
  if (std::find(result.warnings.begin(), result.warnings.end(), sentence) == result.warnings.end())
    result.warnings.push_back(sentence);
}

void check_validity(RunResult& result) {
  check_steps(result);
  check_losses(result);
  check_updates(result);
  check_length(result, result.loss_values.size(), "losses");
  check_length(result, result.learning_rates.size(), "learning rates");
  check_length(result, result.grad_norms.size(), "gradient norms");
  check_length(result, result.memory_values.size(), "memory values");
  if (result.derived.mfu && result.derived.mfu->value > 1) {
    const std::string reason = fmt::format(
        "MFU of {:.0f} % is impossible: the model, the batch, the devices, the peak or the step times are wrong",
        result.derived.mfu->value * 100);
    condemn(result, FailureKind::wrong_work, reason);
    add_warning(result, reason);
  }
}

}  // namespace tprimat

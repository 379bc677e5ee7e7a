#include "result/validity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "result/expert_summary.h"
#include "result/summary.h"

namespace tprimat {
namespace {

using Losses = std::vector<int64_t>;  // updates lost in each entry

int64_t counted_events(const RunResult& result, EventKind kind) {
  if (!result.event_counts) return 0;
  const auto found = result.event_counts->find(kind);
  return found == result.event_counts->end() ? 0 : found->second;
}

// Entries that have a NaN event, and every NaN if the list of these events is truncated. Otherwise a NaN without an
// event is a missing figure.
std::vector<bool> nan_entries(const RunResult& result) {
  std::set<int64_t> told;
  int64_t listed = 0;
  for (const RunEvent& event : result.events.value_or(std::vector<RunEvent>())) {
    if (event.kind != EventKind::nan) continue;
    ++listed;
    if (event.step) told.insert(*event.step);
  }
  const bool is_cut = counted_events(result, EventKind::nan) > listed;
  const auto is_nan = [](const std::vector<double>& series, size_t i) {
    return i < series.size() && std::isnan(series[i]);
  };
  std::vector<bool> entries(result.step_times.size());
  for (size_t i = 0; i < entries.size(); ++i)
    entries[i] = told.count(step_number(result, i)) > 0 ||
                 (is_cut && (is_nan(result.loss_values, i) || is_nan(result.grad_norms, i)));
  return entries;
}

void add_reported_skips(const RunResult& result, Losses& lost) {
  if (!result.events || std::ranges::none_of(*result.events, [](const RunEvent& event) {
        return event.kind == EventKind::skipped_update;
      }))
    return;
  std::map<int64_t, size_t> entries;
  for (size_t i = 0; i < lost.size(); ++i) entries.emplace(step_number(result, i), i);
  for (const RunEvent& event : result.events.value_or(std::vector<RunEvent>())) {
    if (event.kind != EventKind::skipped_update || event.step.value_or(-1) < 0) continue;
    const auto entry = entries.lower_bound(*event.step);
    if (entry == entries.end()) continue;
    const int64_t span = entry_span(result, entry->second);
    const int64_t updates = std::llround(std::clamp(event.value.value_or(1), 1.0, static_cast<double>(span)));
    int64_t& sum = lost[entry->second];
    sum = std::min(sum + updates, span);
  }
}

// The scale falls after an overflow. Some frameworks print it before the update, others after it, so the fall may be
// one entry before the reported skip: both are the same skip.
void add_falls_of_scale(const RunResult& result, Losses& lost) {
  if (!result.reported || !result.reported->loss_scale) return;
  const Losses reported = lost;
  const std::vector<double>& scale = *result.reported->loss_scale;
  for (size_t i = 0; i + 1 < std::min(scale.size(), lost.size()); ++i)
    if (scale[i + 1] < scale[i] && reported[i] + reported[i + 1] == 0) lost[i] = 1;
}

Losses placed_losses(const RunResult& result, const std::vector<bool>& nans) {
  Losses lost(result.step_times.size());
  add_reported_skips(result, lost);
  add_falls_of_scale(result, lost);
  for (size_t i = 0; i < lost.size(); ++i)
    if (nans[i]) lost[i] = std::max<int64_t>(lost[i], 1);
  return lost;
}

// fp16 starts at a scale of 2^32 and halves it at each overflow until the gradients fit; 16 halvings lead to 2^16,
// where trainings run. The skips of this search follow each other from the first step on. bf16 needs no scale.
size_t entries_of_scale_search(const RunResult& result, const Losses& lost) {
  constexpr int64_t k_max_halvings = 16;
  if (result.precision == Precision::bf16) return 0;
  const auto end = std::find(lost.begin(), lost.end(), 0);
  return std::accumulate(lost.begin(), end, int64_t{0}) <= k_max_halvings ? static_cast<size_t>(end - lost.begin()) : 0;
}

}  // namespace

SkippedUpdates count_skipped_updates(const RunResult& result) {
  const size_t entries = result.step_times.size();
  const size_t warmup = std::min(entries, static_cast<size_t>(std::max<int64_t>(0, result.warmup.steps_excluded)));
  const std::vector<bool> nans = nan_entries(result);
  const Losses lost = placed_losses(result, nans);
  const auto placed_from = [&](size_t first) {
    return std::accumulate(lost.begin() + static_cast<std::ptrdiff_t>(first), lost.end(), int64_t{0});
  };
  const int64_t placed = placed_from(0);
  SkippedUpdates skipped;
  skipped.nan = std::count(nans.begin(), nans.end(), true);
  skipped.steps = steps_between(result, 0, entries),
  skipped.steps_after_warmup = steps_between(result, warmup, entries);
  skipped.all = std::min(
      std::max({result.skipped_updates.value_or(0), counted_events(result, EventKind::skipped_update), placed}),
      skipped.steps);
  const int64_t unplaced = std::max<int64_t>(0, skipped.all - placed);
  const int64_t left_in_warmup =
      std::max<int64_t>(0, steps_between(result, 0, warmup) - (placed - placed_from(warmup)));
  skipped.after_warmup = placed_from(std::max(warmup, entries_of_scale_search(result, lost))) +
                         std::max<int64_t>(0, unplaced - left_in_warmup);
  return skipped;
}

std::optional<std::string> find_idle_optimizer(const RunResult& result) {
  constexpr size_t k_enough = 5;  // one line of a warm-up may print zero
  const std::vector<double>& rates = result.learning_rates;
  if (rates.size() < k_enough || std::any_of(rates.begin(), rates.end(), [](double rate) { return rate != 0; }))
    return std::nullopt;
  return fmt::format("learning rate 0 at each of {} steps", rates.size());
}

namespace {

void condemn(RunResult& result, FailureKind kind, std::string reason, RunStatus status = RunStatus::invalid) {
  if (result.status != RunStatus::complete) return;
  result.status = status;
  result.status_reason = std::move(reason);
  result.failure_kind = kind;
}

// A log may lack the times of some steps: the other figures stay valid.
void check_extracted_times(RunResult& result) {
  const auto missing = std::count_if(result.step_times.begin(), result.step_times.end(),
                                     [](double seconds) { return !is_valid_step_time(seconds); });
  if (missing == std::ssize(result.step_times))
    add_warning(result, "the log has no step times");
  else if (missing > 0)
    add_warning(result, fmt::format("the log has no time for {} of {} steps", missing, result.step_times.size()));
}

// A log that reports every tenth step does not show the last nine.
int64_t report_interval(const RunResult& result) {
  if (!result.steps) return 1;
  int64_t interval = 1;
  if (const auto& mean_of = result.steps->mean_of; mean_of && !mean_of->empty())
    interval = std::max<int64_t>(interval, mean_of->back());
  const auto& numbers = result.steps->numbers;
  if (!numbers || numbers->size() < 2) return interval;
  int64_t closest = std::numeric_limits<int64_t>::max();  // two records of single steps, such as iterations 10 and 20
  for (size_t i = 1; i < numbers->size(); ++i) closest = std::min(closest, (*numbers)[i] - (*numbers)[i - 1]);
  return std::max(interval, closest);
}

void check_steps(RunResult& result) {
  const auto steps = steps_reached(result);
  const auto asked = result.training_config.max_steps;
  if (result.step_times.empty()) {
    const bool has_time = result.time_to_train && result.time_to_train->is_success();
    if (!result.derived.tokens_per_second && !has_time)
      condemn(result, FailureKind::steps_missing, "no step was recorded", RunStatus::failed);
    return;
  }
  if (asked && *asked - steps >= report_interval(result))
    condemn(result, FailureKind::steps_missing, fmt::format("stopped after step {} of {}", steps, *asked));
  if (asked && steps > *asked)
    add_warning(result, fmt::format("{} steps recorded, but {} were requested", steps, *asked));
  if (result.steps) return check_extracted_times(result);
  const auto bad = std::find_if(result.step_times.begin(), result.step_times.end(),
                                [](double seconds) { return !is_valid_step_time(seconds); });
  if (bad != result.step_times.end())
    condemn(result, FailureKind::wrong_work,
            fmt::format("step {} has no valid time", bad - result.step_times.begin() + 1));
}

// A logger that reports every k steps leaves gaps; a loss that became NaN stays NaN. So a run of NaNs at the end that
// is longer than every gap before it is a NaN loss.
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

// A run that loses more than half of its updates does not train.
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
              fmt::format("{} {} for {} steps: the steps without one are not known, so the series may be off by {}",
                          length, what, steps, length > steps ? length - steps : steps - length));
}

}  // namespace

int64_t steps_reached(const RunResult& result) {
  if (result.step_times.empty()) return 0;
  const int64_t last = step_number(result, result.step_times.size() - 1);
  return result.steps ? last + 1 - result.steps->counts_from : last;
}

namespace {

struct RoutingFigure {
  std::optional<double> ExpertFigures::*mean;
  std::optional<std::vector<double>> ExpertFigures::*series;
  const char *one, *many;
  double least, most;

  bool allows(double value) const { return value >= least && value <= most; }
};

// The fullest expert takes the mean at least, and at most the tokens of all experts. A loss fits into the single
// precision that trainers compute it in.
std::array<RoutingFigure, 4> list_routing_figures(const RunResult& result) {
  using E = ExpertFigures;
  constexpr double k_rounding = 1e-6, k_max_loss = std::numeric_limits<float>::max();
  const auto& shape = result.model_info.shape;
  const int64_t count = shape && shape->experts ? shape->experts->count : 0;
  const double most_load = count >= 1 ? static_cast<double>(count) * (1 + k_rounding) : k_max_loss;
  return {{{&E::load, &E::load_values, "load of the fullest expert", "loads of experts", 1 - k_rounding, most_load},
           {&E::dropped_share, &E::dropped_values, "share of dropped tokens", "shares of dropped tokens", 0, 1},
           {&E::aux_loss, &E::aux_loss_values, "balancing loss", "balancing losses", 0, k_max_loss},
           {&E::z_loss, &E::z_loss_values, "router z-loss", "router z-losses", 0, k_max_loss}}};
}

// Whether there were any.
bool leave_out_impossible(RunResult& result, const RoutingFigure& figure) {
  auto& series = (*result.experts).*figure.series;
  if (!series) return false;
  double first = 0;
  size_t count = 0;
  for (double& value : *series) {
    if (std::isnan(value) || figure.allows(value)) continue;
    if (count++ == 0) first = value;
    value = std::numeric_limits<double>::quiet_NaN();
  }
  if (count == 0) return false;
  add_warning(result, fmt::format("impossible {} are left out: {} of {}, the first is {:.4g}", figure.many, count,
                                  series->size(), first));
  return true;
}

// Each entry by itself: a mean of impossible ones may look possible.
void check_experts(RunResult& result) {
  if (!result.experts) return;
  bool is_changed = false;
  for (const RoutingFigure& figure : list_routing_figures(result)) {
    if (const auto& series = (*result.experts).*figure.series) check_length(result, series->size(), figure.many);
    is_changed |= leave_out_impossible(result, figure);
  }
  if (is_changed) summarise_experts(result);
  for (const RoutingFigure& figure : list_routing_figures(result)) {
    auto& mean = (*result.experts).*figure.mean;
    if (!mean || figure.allows(*mean)) continue;
    add_warning(result, fmt::format("the {}, {:.4g}, is impossible: it is left out", figure.one, *mean));
    mean.reset();
  }
}

}  // namespace

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
  check_experts(result);
  if (result.derived.mfu && result.derived.mfu->value > 1) {
    const std::string reason = fmt::format(
        "MFU of {:.0f} % is impossible: the model, the batch, the devices, the peak or the step times are wrong",
        result.derived.mfu->value * 100);
    condemn(result, FailureKind::wrong_work, reason);
    add_warning(result, reason);
  }
}

}  // namespace tprimat

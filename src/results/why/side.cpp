#include "why/side.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "base/error.h"
#include "result/summary.h"
#include "stats/descriptive.h"
#include "stats/mean_estimate.h"
#include "text/format.h"
#include "trace/trace_summary.h"
#include "why/checks.h"
#include "why/term_series.h"

namespace tprimat::results {
namespace {

constexpr size_t k_min_steps_for_outliers = 5;
constexpr double k_profiler_bound = 0.10;  // of the unprofiled step; a run that varies more has a wider one

void for_each_series(StepWork& work, const std::function<void(std::vector<double>&)>& visit) {
  visit(work.step_seconds), visit(work.after_mark);
  for (auto& each : work.moments) visit(each);
  for (WorkRow& row : work.rows) visit(row.seconds), visit(row.gap_seconds), visit(row.long_seconds);
}

// Every series of each step times the factor.
void scale_work(StepWork& work, double factor) {
  for_each_series(work, [factor](std::vector<double>& series) {
    for (double& value : series) value *= factor;
  });
}

// Leaves out the recorded steps that are outliers, and returns them.
std::vector<size_t> drop_outliers(StepWork& work) {
  if (work.step_seconds.size() < k_min_steps_for_outliers) return {};
  std::vector<double> own = work.step_seconds;  // what other programs took is no property of a step
  for (size_t i = 0; i < own.size(); ++i) own[i] -= work.moment(Moment::stall)[i];
  const std::vector<size_t> outliers = find_outliers(own);
  if (outliers.empty()) return {};
  for_each_series(work, [&](std::vector<double>& series) {
    for (auto each = outliers.rbegin(); each != outliers.rend(); ++each)
      series.erase(series.begin() + static_cast<std::ptrdiff_t>(*each));
  });
  return outliers;
}

// What the device does after a step's mark is spread over the steps; over the remaining ones it is another share.
void close_work(StepWork& work) {
  double sum = 0;
  for (const auto& each : work.moments) sum += mean_of(each);
  for (const WorkRow& row : work.rows) sum += row.mean_seconds() + mean_of(row.gap_seconds) + mean_of(row.long_seconds);
  work.after_mark.assign(work.step_seconds.size(), sum - mean_of(work.step_seconds));
}

struct SteadySteps {
  double mean = 0, typical = 0, spread = 0;  // s; typical: without outliers; spread: stddev / mean
  std::optional<double> low, high;
  size_t outliers = 0;
};

std::optional<SteadySteps> steady_steps(const std::optional<RunResult>& result) {
  if (!result || !result->statistics || result->statistics->count < 1) return std::nullopt;
  const StepStatistics& statistics = *result->statistics;
  SteadySteps steady{statistics.mean,     statistics.mean,      statistics.cv,
                     statistics.ci95_low, statistics.ci95_high, statistics.outliers.size()};
  if (steady.outliers == 0) return steady;
  std::set<int64_t> left_out = labelled_steps(*result);
  left_out.insert(statistics.outliers.begin(), statistics.outliers.end());
  std::vector<double> rest;
  for (size_t i = static_cast<size_t>(std::max<int64_t>(result->warmup.steps_excluded, 0));
       i < result->step_times.size(); ++i)
    if (std::isfinite(result->step_times[i]) && !left_out.contains(step_number(*result, i)))
      rest.push_back(result->step_times[i]);
  if (!rest.empty()) steady.typical = mean(rest);
  return steady;
}

// The recorded steps of a run take what its other steps take, within what the profiler costs.
void check_scale(const SideInput& input, double recorded, const SteadySteps& steady) {
  const double bound = std::clamp(3.0 * steady.spread, k_profiler_bound, 0.5);
  const double ratio = recorded / steady.typical;
  if (ratio > 1.0 / (1.0 + bound) && ratio < 1.0 + bound) return;
  throw Error(
      {fmt::format("the recorded steps take {}, the measured ones {}: {} {} is beyond the {} that a profiler "
                   "and the run's own variation explain",
                   format_duration(recorded), format_duration(steady.typical), format_percent(std::abs(ratio - 1.0)),
                   ratio > 1 ? "more" : "less", format_percent(bound, 0)),
       input.label,
       ratio > 1 ? "record without stacks and memory, or name the traces instead of the result"
                 : "name the traces that were recorded in this run"});
}

// With two ranks the one that waits more, else the one with the median of own work; ranks without waiting: the first.
size_t choose_rank(const std::vector<StepWork>& works) {
  std::vector<size_t> order(works.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto own = [&](size_t rank) {
    const StepWork& work = works[rank];
    return mean_of(work.step_seconds) - mean_of(work.moment(Moment::waiting));
  };
  std::ranges::stable_sort(order, {}, own);
  return order[(order.size() - 1) / 2];
}

// Mean of the run's devices.
std::optional<double> clock_of(const RunResult& result) {
  std::vector<double> clocks;
  for (const TelemetrySummary& each : result.telemetry)
    if (each.mean_clock_hz && *each.mean_clock_hz > 0) clocks.push_back(*each.mean_clock_hz);
  return clocks.empty() ? std::nullopt : std::optional(mean(clocks));
}

void set_interval(Side& side, const std::optional<SteadySteps>& steady, const std::vector<double>& recorded) {
  if (steady) {
    side.facts.low = steady->low, side.facts.high = steady->high;
    return;
  }
  if (const auto estimate = estimate_steps(recorded)) {
    const Interval interval = student_interval(*estimate);
    side.facts.low = interval.low, side.facts.high = interval.high;
  }
}

std::string device_name(const SideInput& input, const logs::Trace& trace) {
  if (const auto device = busiest_device(trace))
    if (const auto name = logs::device_name(trace, *device)) return *name;
  return input.result ? input.result->gpu_info.device_name : "";
}

void apply_times(Side& side, const SideInput& input) {
  const std::vector<double> recorded = side.work.step_seconds;
  const std::vector<size_t> outliers = drop_outliers(side.work);
  if (!outliers.empty()) close_work(side.work);
  const double recorded_typical = mean_of(side.work.step_seconds);
  const std::optional<SteadySteps> steady = steady_steps(input.result);
  side.facts.recorded_step_seconds = mean_of(recorded);
  side.typical = steady ? steady->typical : recorded_typical;
  side.facts.step_seconds = steady ? steady->mean : mean_of(recorded);
  side.outliers = side.facts.step_seconds - side.typical;
  if (steady) {
    check_scale(input, recorded_typical, *steady);
    side.slow_steps = steady->outliers;
    side.facts.scale = steady->typical / recorded_typical;
    scale_work(side.work, *side.facts.scale);
    if (std::abs(*side.facts.scale - 1.0) >= 0.01)
      side.notes.push_back(fmt::format(
          "{}: the recorded steps take {} {} time than the measured ones, and are scaled to them", input.label,
          format_percent(std::abs(1.0 / *side.facts.scale - 1.0)), *side.facts.scale < 1.0 ? "more" : "less"));
  } else {
    side.slow_steps = outliers.size();
  }
  set_interval(side, steady, recorded);
}

// A reader knows the phases that the trace states; the others follow from names and nesting.
bool lacks_phases(const logs::Trace& trace) {
  size_t operations = 0, unknown = 0;
  for (const logs::HostEvent& event : trace.host_events) {
    if (event.kind != logs::HostEventKind::operation) continue;
    ++operations;
    unknown += event.phase == logs::Phase::unknown ? 1 : 0;
  }
  return 2 * unknown > operations;
}

StepWork work_of(const logs::Trace& trace, const RankWaiting* waiting, const std::string& label) {
  const StepPieces cut = cut_steps(trace, waiting, label);
  check_pieces(trace, cut, label);
  return collect_work(trace, cut);
}

StepWork work_of_rank(const SideInput& input, size_t rank, const RankWaiting* waiting) {
  if (!lacks_phases(input.ranks[rank])) return work_of(input.ranks[rank], waiting, input.label);
  logs::Trace trace = input.ranks[rank];
  logs::find_phases(trace);
  return work_of(trace, waiting, input.label);
}

}  // namespace

Side prepare_side(const SideInput& input) {
  check_traces(input);
  Side side;
  const Waiting waiting = input.ranks.size() > 1 ? match_collectives(input.ranks) : Waiting{};
  std::vector<StepWork> works;
  for (size_t i = 0; i < input.ranks.size(); ++i)
    works.push_back(work_of_rank(input, i, i < waiting.ranks.size() ? &waiting.ranks[i] : nullptr));
  side.rank = choose_rank(works);
  side.work = std::move(works[side.rank]);
  side.late = waiting.late;
  side.notes = waiting.notes;
  side.facts.label = input.label;
  side.facts.files = input.files;
  const std::string device = device_name(input, input.ranks[side.rank]);
  if (!device.empty()) side.facts.device = device;
  side.facts.ranks = static_cast<int64_t>(input.ranks.size());
  side.facts.steps = static_cast<int64_t>(side.work.step_seconds.size());
  side.facts.busy_seconds = side.work.busy_seconds;
  side.facts.hidden_communication_seconds = side.work.hidden_communication_seconds;
  apply_times(side, input);
  side.facts.idle_seconds = std::max(0.0, *side.facts.recorded_step_seconds - side.work.busy_seconds);
  if (input.result) side.clock_hz = clock_of(*input.result);
  for (const std::string& note : input.ranks[side.rank].notes) side.notes.push_back(input.label + ": " + note);
  return side;
}

}  // namespace tprimat::results

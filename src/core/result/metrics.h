#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "result/run_result.h"

namespace tprimat {

enum class Direction { higher_is_better, lower_is_better, neither };
constexpr auto enum_table(Direction) {
  return std::to_array<std::pair<Direction, std::string_view>>({{Direction::higher_is_better, "higher is better"},
                                                                {Direction::lower_is_better, "lower is better"},
                                                                {Direction::neither, "neither"}});
}

// How a value is shown; the stored value is always in the metric's unit.
enum class MetricFormat { count, seconds, gigabytes, percent, significant };

// How a metric of a run follows from its mean step time: only constants of the run lie between (devices, FLOPs, peak,
// price, batch).
enum class StepRelation { none, inverse, proportional };

// Codes of audit rules; unused places are empty.
using RuleCodes = std::array<std::string_view, 7>;

// Values that a figure can take, ends included. No interval is wider.
struct PossibleRange {
  double least = 0, most = std::numeric_limits<double>::infinity();
};

// Tables that a person reads have two parts: speed and work, then what a device needs for them.
enum class MetricTable { speed, resources };

// One figure of a run that people compare. docs/metrics.md derives each under a heading with its key.
struct Metric {
  std::string_view key;        // "tokens_per_second_per_gpu": JSON, CSV
  std::string_view title;      // "tokens/s per GPU": tables
  std::string_view unit = {};  // none of shares
  Direction better;
  MetricFormat format;
  std::string_view formula;  // in words
  std::optional<Estimate> (*read)(const RunResult& result);
  StepRelation relation = StepRelation::none;  // to the mean step time
  RuleCodes unlike = {};                       // findings of a pair after which its two figures mean different things
  RuleCodes doubted = {};                      // findings of a run that put its figure in doubt
  std::string_view contradicted = {};          // prefix of Contradiction::what where the figure is contradicted
  PossibleRange range = {};
  MetricTable table = MetricTable::speed;
  std::string_view share = {};     // key of the metric that is this one / its largest possible value
  std::string_view restates = {};  // key of the metric whose ratio between two runs is the same, or its inverse
};

// The interval, cut to the possible values: the true value is never outside, so that the cut costs no coverage. A
// figure that is itself impossible keeps no interval.
Estimate limit_interval(Estimate estimate, const PossibleRange& range);

// The largest possible value of a figure with a share: figure / share.
std::optional<double> whole_of(const std::optional<Estimate>& figure, const std::optional<Estimate>& share);

// False of a figure that may be negative: the change from +2 % to -3 % is no percentage.
bool has_percentages(const Metric& metric);

// Number of last losses that the final loss averages: a tenth of them, 1 to 20.
size_t final_loss_window(const RunResult& result);

bool holds_code(const RuleCodes& codes, std::string_view code);

// All of them, in the order in which they are shown. The first is the headline.
std::span<const Metric> metrics();

// nullptr for an unknown key.
const Metric* find_metric(std::string_view key);

// For a key that is unknown: "did you mean mfu?", or all keys where none is near.
std::string suggest_metric(std::string_view key);

// The measured memory to compare a prediction with: the native trainer's allocation; for other frameworks the memory
// used on the device, else the memory held by their allocator. Absent if none is known.
std::optional<double> comparable_memory_gb(const RunResult& result);

// The median of the steady steps, else their mean.
std::optional<double> comparable_step_seconds(const RunResult& result);

// predicted / measured - 1; nothing unless both are known.
std::optional<double> memory_prediction_error(const RunResult& result);
std::optional<double> step_time_prediction_error(const RunResult& result);

}  // namespace tprimat

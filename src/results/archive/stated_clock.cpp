#include "archive/stated_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/clock.h"
#include "result/log_clock.h"
#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat::results {
namespace {

struct Tick {
  int64_t step;
  double seconds, ended;
};

struct ClockTolerance {
  double share, seconds;  // share of a step's time, plus seconds
};

// Steps that follow each other.
std::vector<ClockedSteps> measure(const std::vector<Tick>& ticks) {
  std::vector<ClockedSteps> measured;
  for (size_t i = 1; i < ticks.size(); ++i)
    if (ticks[i].step - ticks[i - 1].step == 1)
      measured.push_back({ticks[i].seconds, ticks[i].ended - ticks[i - 1].ended});
  return measured;
}

void compare(const SeriesPlace& place, const std::vector<ClockedSteps>& measured, const ClockTolerance& tolerance,
             Verification& found) {
  constexpr size_t k_min_measured = 2;
  std::vector<double> stated, by_clock, differences;
  for (const ClockedSteps& each : measured) {
    if (!each.are_all) continue;
    stated.push_back(each.stated), by_clock.push_back(each.by_clock);
    differences.push_back(each.by_clock - each.stated);
  }
  if (stated.size() < k_min_measured) return;
  const double usual = median(stated);
  if (std::fabs(median(differences)) <= tolerance.share * usual + tolerance.seconds) return;
  found.broken.push_back({place.file, "step times against time stamps", fmt::format("{:.6g} s per step", usual),
                          fmt::format("{:.6g} s from one step end to the next", median(by_clock)), place.witness});
}

void check_start(const SeriesPlace& place, const RunResult& stated, const Tick& first, Verification& found) {
  constexpr double k_rounding = 2.0;
  const auto start = parse_timestamp(stated.timestamp);
  if (stated.timestamp.empty() || (start && *start <= first.ended - first.seconds + k_rounding)) return;
  found.broken.push_back({place.file, "timestamp", stated.timestamp,
                          fmt::format("the first step began at {}", format_utc(first.ended - first.seconds)),
                          place.witness});
}

}  // namespace

void check_clock(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records, Verification& found) {
  constexpr ClockTolerance k_tolerance{0.1, 0.02};  // a record is written, and a log line, before the next step starts
  std::vector<Tick> ticks;
  for (const auto& [step, record] : records)
    if (record.unix_time && std::isfinite(*record.unix_time) && is_valid_step_time(record.time_seconds))
      ticks.push_back({step, record.time_seconds, *record.unix_time});
  if (ticks.empty()) return;
  check_start(place, stated, ticks.front(), found);
  compare(place, measure(ticks), k_tolerance, found);
}

void check_log_clock(const SeriesPlace& place, const RunResult& stated, Verification& found) {
  constexpr ClockTolerance k_tolerance{0.25, 2.0};
  if (stated.source.step_time == TimeSource::printed) compare(place, clocked_steps(stated, 1), k_tolerance, found);
}

}  // namespace tprimat::results

#include "archive/stated_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/clock.h"
#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat {
namespace {

struct Tick {
  int64_t step, span;  // span: steps that end with this one; `seconds` is the mean of each
  double seconds, ended;
};

struct ClockTolerance {
  double share, seconds;  // share of a step's time, plus seconds
};

// The time between the ends of two steps by the clock, and the stated time of the later one.
struct Stretches {
  std::vector<double> by_clock, stated;
};

Stretches measure(const std::vector<Tick>& ticks) {
  Stretches stretches;
  for (size_t i = 1; i < ticks.size(); ++i) {
    const Tick &before = ticks[i - 1], &tick = ticks[i];
    if (tick.step - before.step != tick.span) continue;
    stretches.by_clock.push_back(tick.ended - before.ended);
    stretches.stated.push_back(tick.seconds * static_cast<double>(tick.span));
  }
  return stretches;
}

void compare(const SeriesPlace& place, const std::vector<Tick>& ticks, const ClockTolerance& tolerance,
             Verification& found) {
  constexpr size_t k_min_stretches = 2;
  const Stretches stretches = measure(ticks);
  if (stretches.stated.size() < k_min_stretches) return;
  std::vector<double> differences;
  for (size_t i = 0; i < stretches.stated.size(); ++i)
    differences.push_back(stretches.by_clock[i] - stretches.stated[i]);
  const double usual = median(stretches.stated);
  if (std::fabs(median(differences)) <= tolerance.share * usual + tolerance.seconds) return;
  found.broken.push_back({place.file, "step times against time stamps", fmt::format("{:.6g} s per step", usual),
                          fmt::format("{:.6g} s from one step end to the next", median(stretches.by_clock)),
                          place.witness});
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
      ticks.push_back({step, 1, record.time_seconds, *record.unix_time});
  if (ticks.empty()) return;
  check_start(place, stated, ticks.front(), found);
  compare(place, ticks, k_tolerance, found);
}

void check_log_clock(const SeriesPlace& place, const RunResult& stated, Verification& found) {
  constexpr ClockTolerance k_tolerance{0.25, 2.0};
  if (!stated.reported || !stated.reported->unix_time || stated.source.step_time != "printed") return;
  std::set<int64_t> labelled;
  for (const LabelledStep& each : stated.steps ? stated.steps->labelled : std::vector<LabelledStep>())
    labelled.insert(each.step);
  std::vector<Tick> ticks;
  for (size_t i = 0; i < stated.step_times.size() && i < stated.reported->unix_time->size(); ++i) {
    const Tick tick{step_number(stated, i), entry_span(stated, i), stated.step_times[i],
                    (*stated.reported->unix_time)[i]};
    if (labelled.contains(tick.step) || !is_valid_step_time(tick.seconds) || !std::isfinite(tick.ended)) continue;
    ticks.push_back(tick);
  }
  compare(place, ticks, k_tolerance, found);
}

}  // namespace tprimat

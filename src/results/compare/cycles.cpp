#include "compare/cycles.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "compare/plausibility.h"
#include "compare/verdict.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

// Of the run's devices, Hz.
std::optional<double> mean_clock(const RunResult& run) {
  double sum = 0;
  int count = 0;
  for (const TelemetrySummary& each : run.telemetry) {
    const double clock = each.mean_clock_hz.value_or(0);
    if (is_possible_clock(run, clock)) sum += clock, ++count;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

// Cycles per step instead of seconds.
std::optional<RateEvidence> count_in_cycles(const Contender& contender) {
  std::vector<double> clocks;
  for (const LoadedRun& run : contender.runs) {
    const auto clock = mean_clock(run.result);
    if (!clock) return std::nullopt;
    clocks.push_back(*clock);
  }
  RateEvidence evidence = gather_evidence(contender);
  for (size_t i = 0; i < evidence.step_times.size(); ++i) {
    evidence.step_times[i].value *= clocks[i];
    evidence.step_times[i].variance *= clocks[i] * clocks[i];
  }
  return evidence;
}

bool names_winner(Verdict verdict) { return verdict == Verdict::faster || verdict == Verdict::slower; }

const char* describe_gap(Verdict by_time, Verdict by_cycles) {
  if (!names_winner(by_time))
    return names_winner(by_cycles) ? "different clocks hide a gap per clock cycle"
                                   : "per clock cycle neither side leads";
  if (by_cycles == by_time) return "the gap remains per clock cycle";
  if (by_cycles == Verdict::inconclusive) return "per clock cycle the gap is uncertain";
  if (names_winner(by_cycles)) return "the clocks explain the gap: per clock cycle the other side leads";
  return "the clocks explain the gap: per clock cycle it disappears";
}

Finding describe_cycles(const Pair& pair, const Contender& reference, const Contender& subject) {
  const Estimate& ratio = *pair.statistics->cycle_ratio;
  const bool same_device = reference.first().gpu_info.device_name == subject.first().gpu_info.device_name;
  const auto figure = [](double value) { return format_significant(value, 4); };
  return {"clock", Severity::note,
          fmt::format("{}: ratio {} per cycle ({} to {}) against {} by time{}",
                      describe_gap(pair.verdict, *pair.statistics->cycle_verdict), figure(ratio.value),
                      figure(*ratio.low), figure(*ratio.high), figure(pair.ratio->value),
                      same_device ? "" : "; a cycle of a different device does different work"),
          ""};
}

}  // namespace

void confirm_in_cycles(Pair& pair, const Contender& reference, const Contender& subject, const Margins& margins) {
  if (!pair.statistics) return;
  const auto before = count_in_cycles(reference);
  const auto after = before ? count_in_cycles(subject) : std::nullopt;
  if (!after) return;
  const auto ratio = measure_ratio(*before, *after, margins.assumed_run_spread);
  pair.statistics->cycle_ratio = to_estimate(*ratio);
  pair.statistics->cycle_verdict = judge(pair.statistics->cycle_ratio, margins.smallest_effect);
  pair.findings.push_back(describe_cycles(pair, reference, subject));
}

}  // namespace tprimat::results

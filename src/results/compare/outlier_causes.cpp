#include "compare/plausibility.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "result/summary.h"
#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr double k_held_share = 0.5;    // of its readings: a step with more throttled ones counts as throttled
constexpr double k_rare_share = 0.1;    // of the ordinary steps: a more frequent condition explains no outlier
constexpr size_t k_enough_steps = 5;    // ordinary steps with readings, to judge rarity
constexpr double k_lower_clock = 0.95;  // of the ordinary steps' median
constexpr double k_fuller = 1.2;        // of the ordinary steps' median load of the fullest expert
constexpr double k_as_busy = 0.9;       // of the ordinary steps' median: an idle device lowers its clock, too

const std::map<std::string_view, std::string_view>& throttle_reasons() {
  static const std::map<std::string_view, std::string_view> words = {{"power", "power throttling"},
                                                                     {"thermal", "thermal throttling"},
                                                                     {"current", "current throttling"},
                                                                     {"hardware", "hardware throttling"},
                                                                     {"clock_set", "a lower clock setting"}};
  return words;
}

std::optional<double> figure_of(const std::vector<double>& values, size_t entry) {
  if (entry >= values.size() || !std::isfinite(values[entry])) return std::nullopt;
  return values[entry];
}

// The ordinary steps' readings in one series; held_share: share of them that count as throttled.
struct Ordinary {
  size_t count = 0;
  double median = 0, held_share = 0;
};

// The steps of one run, with their records.
class StepCauses {
 public:
  explicit StepCauses(const RunResult& run) : run_(run) {
    const std::set<int64_t> outliers(run.statistics->outliers.begin(), run.statistics->outliers.end());
    std::set<int64_t> labelled;
    if (run.steps)
      for (const LabelledStep& each : run.steps->labelled) labelled.insert(each.step);
    if (run.events)
      for (const RunEvent& event : *run.events)
        if (event.step) events_.insert({*event.step, &event});
    for (size_t i = 0; i < run.step_times.size(); ++i) {
      const int64_t step = step_number(run, i);
      if (outliers.contains(step)) outliers_.push_back(i), entries_[step] = i;
      const bool counts = static_cast<int64_t>(i) >= run.warmup.steps_excluded && is_valid_step_time(run.step_times[i]);
      if (counts && !outliers.contains(step) && !labelled.contains(step)) ordinary_.push_back(i);
    }
  }

  // "a checkpoint and thermal throttling"; empty if nothing recorded fell into the step.
  std::string of(int64_t step) const {
    std::vector<std::string> causes = events_of(step);
    const auto entry = entries_.find(step);
    const bool slow = entry != entries_.end() && run_.step_times[entry->second] > run_.statistics->median;
    if (slow && run_.experts && has_fuller_expert(entry->second)) causes.emplace_back("an uneven load of the experts");
    if (slow && run_.step_telemetry) add_seen(causes, entry->second);
    return join(causes, " and ");
  }

  // "; the longest streak is steps 20 to 27", of three or more in a row.
  std::string longest_spell() const {
    constexpr size_t k_spell = 3;
    size_t first = 0, length = 0;
    for (size_t i = 0, start = 0; i < outliers_.size(); ++i) {
      if (i > 0 && outliers_[i] != outliers_[i - 1] + 1) start = i;
      if (i - start + 1 > length) length = i - start + 1, first = start;
    }
    if (length < k_spell) return "";
    return fmt::format("; the longest streak is steps {} to {}", step_number(run_, outliers_[first]),
                       step_number(run_, outliers_[first + length - 1]));
  }

 private:
  // Of the events of a step and of the one before it, the first in the log.
  std::vector<std::string> events_of(int64_t step) const {
    const RunEvent* first = nullptr;
    for (const int64_t each : {step, step - 1})
      if (const auto found = events_.find(each); found != events_.end())
        if (first == nullptr || found->second < first) first = found->second;
    if (first == nullptr || first->kind == EventKind::other) return {};
    std::string words(enum_name(first->kind));
    std::ranges::replace(words, '_', ' ');
    const bool vowel = std::string_view("aeiou").find(words.front()) != std::string_view::npos;
    return {fmt::format("{} {}", vowel ? "an" : "a", words)};
  }

  void add_seen(std::vector<std::string>& causes, size_t entry) const {
    const StepTelemetry& seen = *run_.step_telemetry;
    if (seen.throttle_shares) {
      for (const auto& [reason, shares] : *seen.throttle_shares) {
        const auto words = throttle_reasons().find(reason);
        if (words != throttle_reasons().end() && is_rare(shares, entry, k_held_share))
          causes.emplace_back(words->second);
      }
    } else if (has_lower_clock(seen, entry)) {
      causes.emplace_back("a lower clock");
    }
    if (seen.others_busy_threads && is_rare(*seen.others_busy_threads, entry, 0.01))
      causes.emplace_back("other processes on the CPUs");
  }

  // Made once for each series: a run may have thousands of outliers.
  const Ordinary& ordinary_of(const std::vector<double>& values, double least) const {
    const auto [place, is_new] = ordinary_figures_.try_emplace(&values);
    if (!is_new) return place->second;
    std::vector<double> figures;
    for (const size_t entry : ordinary_)
      if (const auto figure = figure_of(values, entry)) figures.push_back(*figure);
    const auto reach = std::ranges::count_if(figures, [&](double value) { return value >= least; });
    Ordinary& ordinary = place->second;
    ordinary.count = figures.size();
    if (ordinary.count < k_enough_steps) return ordinary;
    ordinary.held_share = static_cast<double>(reach) / static_cast<double>(ordinary.count);
    ordinary.median = median(figures);
    return ordinary;
  }

  // Whether the entry reaches `least`, and the ordinary ones hardly ever do.
  bool is_rare(const std::vector<double>& values, size_t entry, double least) const {
    if (figure_of(values, entry).value_or(0.0) < least) return false;
    const Ordinary& ordinary = ordinary_of(values, least);
    return ordinary.count >= k_enough_steps && ordinary.held_share <= k_rare_share;
  }

  // The entry's figure as a share of the ordinary ones' median.
  std::optional<double> against_ordinary(const std::optional<std::vector<double>>& values, size_t entry) const {
    if (!values) return std::nullopt;
    const auto figure = figure_of(*values, entry);
    if (!figure) return std::nullopt;
    const Ordinary& ordinary = ordinary_of(*values, 0.0);
    if (ordinary.count < k_enough_steps) return std::nullopt;
    return ordinary.median > 0.0 ? std::optional(*figure / ordinary.median) : std::nullopt;
  }

  bool has_lower_clock(const StepTelemetry& seen, size_t entry) const {
    const auto clock = against_ordinary(seen.lowest_clock_hz, entry), busy = against_ordinary(seen.utilisation, entry);
    return clock && busy && *clock < k_lower_clock && *busy >= k_as_busy;
  }

  bool has_fuller_expert(size_t entry) const {
    const auto load = against_ordinary(run_.experts->load_values, entry);
    return load && *load >= k_fuller;
  }

  const RunResult& run_;
  std::vector<size_t> outliers_, ordinary_;    // entries of step_times
  std::map<int64_t, size_t> entries_;          // of the outliers, by number of the step
  std::map<int64_t, const RunEvent*> events_;  // the first of each step
  mutable std::map<const std::vector<double>*, Ordinary> ordinary_figures_;
};

std::string count_causes(const RunResult& run, const StepCauses& causes) {
  std::map<std::string, int> counts;
  for (const int64_t step : run.statistics->outliers) ++counts[causes.of(step)];
  std::string text;
  for (const auto& [cause, count] : counts)
    if (!cause.empty()) text += fmt::format("{}{} with {}", text.empty() ? "" : ", ", count, cause);
  if (counts.contains("")) text += fmt::format("{}{} unattributed", text.empty() ? "" : ", ", counts[""]);
  return text;
}

// The reason that throttled a device's clock in most readings.
std::string describe_throttling(const RunResult& run) {
  if (run.step_telemetry && run.step_telemetry->throttle_shares) return "";
  double most = 0;
  std::string reason;
  for (const TelemetrySummary& each : run.telemetry)
    if (each.throttle_shares)
      for (const auto& [name, share] : *each.throttle_shares)
        if (share > most) most = share, reason = name;
  if (most <= 0) return "";
  return fmt::format("; the clock was throttled in {} of the run's readings ({})", format_percent(most, 0), reason);
}

std::string describe_neighbours(const RunResult& run) {
  if (run.step_telemetry && run.step_telemetry->others_busy_threads) return "";
  for (const TelemetrySummary& each : run.telemetry)
    if (each.others_busy_threads)
      return fmt::format("; other processes kept {:.1f} hardware threads busy", *each.others_busy_threads);
  return "";
}

}  // namespace

std::string describe_outliers(const RunResult& run) {
  const StepStatistics& statistics = *run.statistics;
  const StepCauses causes(run);
  return fmt::format("{} of {} steady steps, {}step {}: {}{}{}{}", statistics.outliers.size(), statistics.count,
                     statistics.outliers.size() == 1 ? "" : "the first is ", statistics.outliers.front(),
                     count_causes(run, causes), causes.longest_spell(), describe_throttling(run),
                     describe_neighbours(run));
}

}  // namespace tprimat::results

#include "archive/stated_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include "archive/stated_numbers.h"
#include "result/summary.h"

namespace tprimat::results {
namespace {

struct StatedSeries {
  const char* title;
  std::vector<double> RunResult::*values;
  std::optional<double> StepRecord::*recorded;
};
constexpr std::array k_series = {
    StatedSeries{"loss", &RunResult::loss_values, &StepRecord::loss},
    StatedSeries{"learning rate", &RunResult::learning_rates, &StepRecord::learning_rate},
    StatedSeries{"gradient norm", &RunResult::grad_norms, &StepRecord::grad_norm},
    StatedSeries{"memory in GB", &RunResult::memory_values, &StepRecord::memory_allocated_gb}};

size_t longest_series(const RunResult& result) {
  size_t entries = result.step_times.size();
  for (const StatedSeries& series : k_series) entries = std::max(entries, (result.*series.values).size());
  return entries;
}

std::optional<double> entry_of(const std::vector<double>& values, size_t entry) {
  return entry < values.size() && std::isfinite(values[entry]) ? std::optional(values[entry]) : std::nullopt;
}

std::string show_entry(const std::optional<double>& figure) { return figure ? show_figure(*figure) : "nothing"; }

class SeriesCheck {
 public:
  SeriesCheck(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records, Verification& found)
      : place_(place), stated_(stated), records_(records), found_(found) {}

  void run() {
    const size_t entries = longest_series(stated_);
    for (size_t i = 0; i < entries; ++i) check_step(i);
    check_left_out(entries);
  }

 private:
  void check_step(size_t entry) {
    const int64_t number = step_number(stated_, entry);
    const auto found = records_.find(number);
    const StepRecord* record = found == records_.end() ? nullptr : &found->second;
    if (entry < stated_.step_times.size()) ++found_.steps;
    const auto time = record != nullptr ? std::optional(record->time_seconds) : std::nullopt;
    compare(number, "time in s", entry_of(stated_.step_times, entry), time);
    for (const StatedSeries& series : k_series)
      compare(number, series.title, entry_of(stated_.*series.values, entry),
              record != nullptr ? record->*series.recorded : std::nullopt);
  }

  void compare(int64_t step, const char* title, const std::optional<double>& stated,
               const std::optional<double>& recorded) {
    if (!stated && (!recorded || !std::isfinite(*recorded))) return;
    if (stated && recorded && is_same_figure(*stated, *recorded)) return;
    found_.broken.push_back({place_.file, fmt::format("step {}, {}", step, title), show_entry(stated),
                             show_entry(recorded), place_.witness});
  }

  // A suite drops records with impossible step numbers, and says so.
  void check_left_out(size_t entries) {
    constexpr int64_t k_max = int64_t{1} << 50;
    const int64_t asked = std::clamp<int64_t>(stated_.training_config.max_steps.value_or(k_max), 0, k_max);
    std::set<int64_t> numbers;
    for (size_t i = 0; i < entries; ++i) numbers.insert(step_number(stated_, i));
    const auto left_out = std::count_if(records_.begin(), records_.end(), [&](const auto& record) {
      return record.first <= 2 * asked + 1000 && !numbers.contains(record.first);
    });
    if (left_out > 0)
      found_.broken.push_back(
          {place_.file, "steps", fmt::format("{}", entries), fmt::format("{} more", left_out), place_.witness});
  }

  const SeriesPlace& place_;
  const RunResult& stated_;
  const RecordsByStep& records_;
  Verification& found_;
};

// The fields of step records outside the series: time stamps, loss scales, tokens, skipped updates.
class WorkCheck {
 public:
  WorkCheck(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records, Verification& found)
      : place_(place), stated_(stated), records_(records), found_(found) {}

  void run() {
    if (stated_.reported) {
      check_reported("time stamp", stated_.reported->unix_time, &StepRecord::unix_time);
      check_reported("loss scale", stated_.reported->loss_scale, &StepRecord::loss_scale);
    }
    check_tokens();
    check_skipped();
  }

 private:
  void check_reported(const char* title, const std::optional<std::vector<double>>& stated,
                      std::optional<double> StepRecord::*recorded) {
    constexpr double k_millisecond = 1e-3;  // of a time stamp
    for (size_t i = 0; stated && i < stated->size(); ++i) {
      const int64_t step = step_number(stated_, i);
      const auto record = records_.find(step);
      const auto told = record == records_.end() ? std::nullopt : record->second.*recorded;
      const auto entry = entry_of(*stated, i);
      if (!entry && (!told || !std::isfinite(*told))) continue;
      if (entry && told && std::fabs(*entry - *told) <= k_millisecond) continue;
      refute(fmt::format("step {}, {}", step, title), show_entry(entry), show_entry(told));
    }
  }

  // The audit of a run that trained on another number of tokens than asked gives the number of one such step.
  void check_tokens() {
    const auto expected = tokens_per_step(stated_);
    if (!expected) return;
    const auto audited =
        std::find_if(stated_.config_audit.begin(), stated_.config_audit.end(),
                     [](const AuditEntry& entry) { return entry.key == "tokens_per_step" && entry.asked; });
    for (const auto& [step, record] : records_) {
      if (!record.tokens || *record.tokens == *expected) continue;
      const std::string told = std::to_string(*record.tokens);
      if (audited == stated_.config_audit.end())
        return refute(fmt::format("step {}, tokens", step), std::to_string(*expected), told);
      if (audited->effective != told) refute("config_audit.tokens_per_step", audited->effective, told);
      return;
    }
  }

  void check_skipped() {
    const auto skipped = std::count_if(records_.begin(), records_.end(),
                                       [](const auto& record) { return record.second.skipped.value_or(false); });
    if (stated_.skipped_updates.value_or(0) == skipped) return;
    const auto& stated = stated_.skipped_updates;
    refute("skipped_updates", stated ? std::to_string(*stated) : "nothing", std::to_string(skipped));
  }

  void refute(const std::string& what, const std::string& stated, const std::string& recorded) {
    found_.broken.push_back({place_.file, what, stated, recorded, place_.witness});
  }

  const SeriesPlace& place_;
  const RunResult& stated_;
  const RecordsByStep& records_;
  Verification& found_;
};

}  // namespace

RecordsByStep index_records(const std::vector<StepRecord>& records) {
  RecordsByStep by_step;
  for (const StepRecord& record : records) by_step[record.step] = record;
  return by_step;
}

RecordsByStep parse_records(const std::string& lines) {
  std::istringstream stream(lines);
  RecordsByStep by_step;
  for (std::string line; std::getline(stream, line);)
    if (const auto record = parse_step_record(line)) by_step[record->step] = *record;
  return by_step;
}

RecordsByStep records_of(const RunResult& result) {
  RecordsByStep by_step;
  for (size_t i = 0; i < result.step_times.size(); ++i) {
    StepRecord record;
    record.step = step_number(result, i);
    record.time_seconds = result.step_times[i];
    for (const StatedSeries& series : k_series)
      if (i < (result.*series.values).size()) record.*series.recorded = (result.*series.values)[i];
    by_step[record.step] = record;
  }
  return by_step;
}

void check_series(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records,
                  Verification& found) {
  SeriesCheck(place, stated, records, found).run();
}

void check_work(const SeriesPlace& place, const RunResult& stated, const RecordsByStep& records, Verification& found) {
  WorkCheck(place, stated, records, found).run();
}

}  // namespace tprimat::results

#include "archive/witnesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include "base/clock.h"
#include "result/consistency.h"
#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat::results {
namespace {

using Entry = std::optional<double>;

struct StatedSeries {
  const char* title;
  std::vector<double> RunResult::*values;
  Entry StepRecord::*recorded;
};
constexpr std::array k_series = {
    StatedSeries{"loss", &RunResult::loss_values, &StepRecord::loss},
    StatedSeries{"learning rate", &RunResult::learning_rates, &StepRecord::learning_rate},
    StatedSeries{"gradient norm", &RunResult::grad_norms, &StepRecord::grad_norm},
    StatedSeries{"memory in GB", &RunResult::memory_values, &StepRecord::memory_allocated_gb}};

struct ExpertSeries {
  const char* title;
  std::optional<std::vector<double>> ExpertFigures::*values;
  Entry StepRecord::*recorded;
};
constexpr std::array k_expert_series = {
    ExpertSeries{"load of the fullest expert", &ExpertFigures::load_values, &StepRecord::expert_load},
    ExpertSeries{"dropped tokens", &ExpertFigures::dropped_values, &StepRecord::dropped_share},
    ExpertSeries{"balancing loss", &ExpertFigures::aux_loss_values, &StepRecord::aux_loss},
    ExpertSeries{"router z-loss", &ExpertFigures::z_loss_values, &StepRecord::z_loss}};

const std::vector<double>& values_of(const RunResult& result, const ExpertSeries& series) {
  static const std::vector<double> none;
  const auto* values = result.experts ? &((*result.experts).*series.values) : nullptr;
  return values != nullptr && *values ? **values : none;
}

size_t longest_series(const RunResult& result) {
  size_t entries = result.step_times.size();
  for (const StatedSeries& series : k_series) entries = std::max(entries, (result.*series.values).size());
  for (const ExpertSeries& series : k_expert_series) entries = std::max(entries, values_of(result, series).size());
  return entries;
}

Entry entry_of(const std::vector<double>& values, size_t entry) {
  return entry < values.size() && std::isfinite(values[entry]) ? Entry(values[entry]) : std::nullopt;
}

std::string show_entry(const Entry& figure) { return figure ? show_figure(*figure) : "nothing"; }

bool is_same_time_stamp(double stated, double recorded) { return std::fabs(stated - recorded) <= 1e-3; }  // s

struct StepPlace {
  int64_t step;
  const char* title;
};

// A stated entry is a number or absent; a record may hold NaN, which also means absent.
void compare_entries(const ResultCheck& check, const StepPlace& place, const Entry& stated, const Entry& recorded,
                     bool (*is_same)(double, double)) {
  const bool is_silent = !stated && (!recorded || !std::isfinite(*recorded));
  if (!is_silent && (!stated || !recorded || !is_same(*stated, *recorded)))
    check.refute(fmt::format("step {}, {}", place.step, place.title), show_entry(stated), show_entry(recorded));
}

const StepRecord* find_record(const RecordsByStep& records, int64_t step) {
  const auto found = records.find(step);
  return found == records.end() ? nullptr : &found->second;
}

// A suite drops records with impossible step numbers, with a warning.
void check_left_out(const ResultCheck& check, const RecordsByStep& records, size_t entries) {
  constexpr int64_t k_max = int64_t{1} << 50;
  const RunResult& stated = check.result.read;
  const int64_t asked = std::clamp<int64_t>(stated.training_config.max_steps.value_or(k_max), 0, k_max);
  std::set<int64_t> numbers;
  for (size_t i = 0; i < entries; ++i) numbers.insert(step_number(stated, i));
  const auto left_out = std::ranges::count_if(
      records, [&](const auto& record) { return record.first <= 2 * asked + 1000 && !numbers.contains(record.first); });
  if (left_out > 0) check.refute("steps", fmt::format("{}", entries), fmt::format("{} more", left_out));
}

struct Told {
  const char* title;
  Entry StepRecord::*recorded;
  bool (*is_same)(double, double);
};

void check_told(const ResultCheck& check, const RecordsByStep& records, const Told& told,
                const std::optional<std::vector<double>>& stated) {
  for (size_t i = 0; stated && i < stated->size(); ++i) {
    const int64_t step = step_number(check.result.read, i);
    const StepRecord* record = find_record(records, step);
    compare_entries(check, {step, told.title}, entry_of(*stated, i),
                    record != nullptr ? record->*told.recorded : std::nullopt, told.is_same);
  }
}

// The audit of a run that trained on another number of tokens than asked gives the number of one such step.
void check_tokens(const ResultCheck& check, const RecordsByStep& records) {
  const auto expected = tokens_per_step(check.result.read);
  if (!expected) return;
  const auto& audit = check.result.read.config_audit;
  const auto audited = std::ranges::find_if(
      audit, [](const AuditEntry& entry) { return entry.key == "tokens_per_step" && entry.asked; });
  for (const auto& [step, record] : records) {
    if (!record.tokens || *record.tokens == *expected) continue;
    const std::string told = std::to_string(*record.tokens);
    if (audited == audit.end())
      check.refute(fmt::format("step {}, tokens", step), std::to_string(*expected), told);
    else if (audited->effective != told)
      check.refute("config_audit.tokens_per_step", audited->effective, told);
    return;
  }
}

struct Tick {
  int64_t step;
  double seconds, ended;
};

// `share` of a step's time, plus `seconds`, are accepted.
void compare_clocks(const ResultCheck& check, const std::vector<ClockedSteps>& measured, double share, double seconds) {
  constexpr size_t k_min_measured = 2;
  std::vector<double> stated, by_clock, differences;
  for (const ClockedSteps& each : measured) {
    if (!each.are_all) continue;
    stated.push_back(each.stated), by_clock.push_back(each.by_clock);
    differences.push_back(each.by_clock - each.stated);
  }
  if (stated.size() < k_min_measured) return;
  const double usual = median(stated);
  if (std::fabs(median(differences)) > share * usual + seconds)
    check.refute("step times against time stamps", fmt::format("{:.6g} s per step", usual),
                 fmt::format("{:.6g} s from one step end to the next", median(by_clock)));
}

void check_start(const ResultCheck& check, double first_began) {
  constexpr double k_rounding = 2.0;
  const std::string& stated = check.result.read.timestamp;
  const auto start = parse_timestamp(stated);
  if (!stated.empty() && (!start || *start > first_began + k_rounding))
    check.refute("timestamp", stated, fmt::format("the first step began at {}", format_utc(first_began)));
}

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
  add_expert_series(by_step, result);
  return by_step;
}

void add_expert_series(RecordsByStep& records, const RunResult& result) {
  for (const ExpertSeries& series : k_expert_series) {
    const std::vector<double>& values = values_of(result, series);
    for (size_t i = 0; i < values.size(); ++i)
      if (const auto record = records.find(step_number(result, i)); record != records.end())
        record->second.*series.recorded = values[i];
  }
}

void check_series(const ResultCheck& check, const RecordsByStep& records) {
  const RunResult& stated = check.result.read;
  const size_t entries = longest_series(stated);
  check.found.steps += std::ssize(stated.step_times);
  for (size_t i = 0; i < entries; ++i) {
    const int64_t step = step_number(stated, i);
    const StepRecord* record = find_record(records, step);
    const auto compare = [&](const char* title, const std::vector<double>& values, const Entry& recorded) {
      compare_entries(check, {step, title}, entry_of(values, i), recorded, is_same_figure);
    };
    compare("time in s", stated.step_times, record != nullptr ? Entry(record->time_seconds) : std::nullopt);
    for (const StatedSeries& series : k_series)
      compare(series.title, stated.*series.values, record != nullptr ? record->*series.recorded : std::nullopt);
    for (const ExpertSeries& series : k_expert_series)
      compare(series.title, values_of(stated, series), record != nullptr ? record->*series.recorded : std::nullopt);
  }
  check_left_out(check, records, entries);
}

void check_profile(const ResultCheck& check, const RecordsByStep& records) {
  const RunProfile& stated = *check.result.read.profile;
  constexpr int64_t k_max = int64_t{1} << 50;
  const auto entries = std::ssize(stated.step_times);
  if (stated.first_step < 1 || stated.last_step < stated.first_step || stated.last_step > k_max)
    return check.refute("profile.first_step", fmt::format("{}", stated.first_step), "a step before the last");
  if (stated.last_step - stated.first_step + 1 != entries)
    check.refute("profile.last_step", fmt::format("{}", stated.last_step), fmt::format("{} steps", entries));
  for (std::ptrdiff_t i = 0; i < entries; ++i) {
    const int64_t step = stated.first_step + i;
    const StepRecord* record = find_record(records, step);
    compare_entries(check, {step, "time in s"}, stated.step_times[static_cast<size_t>(i)],
                    record != nullptr ? Entry(record->time_seconds) : std::nullopt, is_same_figure);
  }
}

void check_work(const ResultCheck& check, const RecordsByStep& records) {
  const RunResult& stated = check.result.read;
  if (stated.reported) {
    check_told(check, records, {"time stamp", &StepRecord::unix_time, is_same_time_stamp}, stated.reported->unix_time);
    check_told(check, records, {"loss scale", &StepRecord::loss_scale, is_same_time_stamp},
               stated.reported->loss_scale);
  }
  check_tokens(check, records);
  const auto skipped =
      std::ranges::count_if(records, [](const auto& record) { return record.second.skipped.value_or(false); });
  if (stated.skipped_updates.value_or(0) != skipped)
    check.refute("skipped_updates", stated.skipped_updates ? std::to_string(*stated.skipped_updates) : "nothing",
                 std::to_string(skipped));
}

void check_clock(const ResultCheck& check, const RecordsByStep& records) {
  std::vector<Tick> ticks;
  for (const auto& [step, record] : records)
    if (record.unix_time && std::isfinite(*record.unix_time) && is_valid_step_time(record.time_seconds))
      ticks.push_back({step, record.time_seconds, *record.unix_time});
  if (ticks.empty()) return;
  check_start(check, ticks.front().ended - ticks.front().seconds);
  std::vector<ClockedSteps> measured;
  for (size_t i = 1; i < ticks.size(); ++i)
    if (ticks[i].step - ticks[i - 1].step == 1)
      measured.push_back({ticks[i].seconds, ticks[i].ended - ticks[i - 1].ended});
  compare_clocks(check, measured, 0.1, 0.02);  // a record is written, and a log line, before the next step starts
}

void check_log_clock(const ResultCheck& check) {
  const RunResult& stated = check.result.read;
  if (stated.source.step_time == TimeSource::printed) compare_clocks(check, clocked_steps(stated, 1), 0.25, 2.0);
}

}  // namespace tprimat::results

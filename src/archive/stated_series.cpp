#include "archive/stated_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <sstream>

#include "archive/stated_numbers.h"
#include "result/summary.h"

namespace tprimat {
namespace {

struct StatedSeries {
  const char* title;
  std::vector<double> RunResult::* values;
  std::optional<double> StepRecord::* recorded;
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

class SeriesCheck {
 public:
  SeriesCheck(const std::string& file, const RunResult& stated, const RecordsByStep& records, Verification& found)
      : file_(file), stated_(stated), records_(records), found_(found) {}

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
    found_.broken.push_back({file_, fmt::format("step {}, {}", step, title), stated ? show_figure(*stated) : "nothing",
                             recorded ? show_figure(*recorded) : "nothing"});
  }

  // A suite drops records with impossible step numbers, and says so.
  void check_left_out(size_t entries) {
    constexpr int64_t k_most = int64_t{1} << 50;
    const int64_t asked = std::clamp<int64_t>(stated_.training_config.max_steps.value_or(k_most), 0, k_most);
    std::set<int64_t> numbers;
    for (size_t i = 0; i < entries; ++i) numbers.insert(step_number(stated_, i));
    const auto left_out = std::count_if(records_.begin(), records_.end(), [&](const auto& record) {
      return record.first <= 2 * asked + 1000 && !numbers.contains(record.first);
    });
    if (left_out > 0)
      found_.broken.push_back({file_, "steps", fmt::format("{}", entries), fmt::format("{} more recorded", left_out)});
  }

  const std::string& file_;
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

void check_series(const std::string& file, const RunResult& stated, const RecordsByStep& records, Verification& found) {
  SeriesCheck(file, stated, records, found).run();
}

}  // namespace tprimat

#include "extract/finish_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "extract/common/setting_names.h"

namespace tprimat {
namespace {

template <class... Members>
void fill_facts(LoggedFacts& facts, const LoggedFacts& other, Members... members) {
  const auto fill = [&](auto member) {
    if (!(facts.*member)) facts.*member = other.*member;
  };
  (fill(members), ...);
}

void merge_facts(LoggedFacts& facts, const LoggedFacts& other) {
  using F = LoggedFacts;
  fill_facts(facts, other, &F::platform, &F::framework, &F::framework_version, &F::model, &F::gpu_name,
             &F::pytorch_version, &F::stack_version, &F::optimizer, &F::schedule, &F::dataset, &F::precision,
             &F::gpu_count, &F::gpu_memory_gb, &F::parameters);
  fill_facts(facts, other, &F::max_steps, &F::global_batch_size, &F::micro_batch_size, &F::sequence_length,
             &F::tensor_parallel, &F::pipeline_parallel, &F::data_parallel, &F::context_parallel,
             &F::accumulation_steps, &F::warmup_steps, &F::seed, &F::learning_rate, &F::min_learning_rate,
             &F::weight_decay, &F::clip_grad_norm, &F::peak_flops, &F::recompute, &F::virtual_pipeline, &F::zero_stage,
             &F::sequence_parallel);
}

bool by_line(const LogEvent& a, const LogEvent& b) { return a.line < b.line; }

// The last step that was reported before each event that names none.
void place_events(ExtractedLog& log) {
  size_t next = 0;
  for (LogEvent& event : log.events) {
    while (next < log.steps.size() && log.steps[next].line < event.line) ++next;
    if (event.step < 0 && next > 0) event.step = log.steps[next - 1].step;
  }
}

// A record's time is the mean over the steps since the record before, where the log reports every n-th.
void set_intervals(ExtractedLog& log) {
  for (size_t i = 0; i < log.steps.size(); ++i) {
    ExtractedStep& step = log.steps[i];
    if (step.mean_of != 1 || step.single) continue;
    const bool follows = i > 0 && log.steps[i - 1].attempt == step.attempt;
    const bool leads = i + 1 < log.steps.size() && log.steps[i + 1].attempt == step.attempt;
    int64_t interval = 1;
    if (follows)
      interval = step.step - log.steps[i - 1].step;
    else if (leads && log.steps[i + 1].step - step.step == step.step)
      interval = step.step;  // the first record of a run from its start: 10, 20, ...
    if (interval > 1 && interval <= 1'000'000) step.mean_of = static_cast<int32_t>(interval);
  }
}

// Steps after which an evaluation or a checkpoint was reported, up to the next record.
void label_pauses(ExtractedLog& log, EventKind kind, bool ExtractedStep::*label) {
  std::vector<size_t> labelled;
  size_t next = 0;
  for (const LogEvent& event : log.events) {
    if (event.kind != kind) continue;
    while (next < log.steps.size() && log.steps[next].line <= event.line) ++next;
    if (next == log.steps.size()) break;
    if (labelled.empty() || labelled.back() != next) labelled.push_back(next);
  }
  // Where more than half of all records hold a pause, they are what there is to measure.
  if (2 * labelled.size() > log.steps.size()) return;
  for (const size_t index : labelled) log.steps[index].*label = true;
}

// Every loss or gradient norm that is no number is an event, whether or not the dialect says so.
void add_nan_events(ExtractedLog& log) {
  std::set<int64_t> told;
  for (const LogEvent& event : log.events)
    if (event.kind == EventKind::nan) told.insert(event.step);
  std::vector<LogEvent> events;
  for (const ExtractedStep& step : log.steps) {
    const bool nan_loss = step.loss && std::isnan(*step.loss), nan_norm = step.grad_norm && std::isnan(*step.grad_norm);
    if ((!nan_loss && !nan_norm) || told.count(step.step) > 0) continue;
    if (++log.event_counts[EventKind::nan] <= 1000)
      events.push_back({EventKind::nan,
                        step.line,
                        step.rank,
                        step.step,
                        {},
                        {},
                        nan_loss ? "the loss is no number" : "the gradient norm is no number"});
  }
  const auto middle = static_cast<std::ptrdiff_t>(log.events.size());
  std::move(events.begin(), events.end(), std::back_inserter(log.events));
  std::inplace_merge(log.events.begin(), log.events.begin() + middle, log.events.end(), by_line);
}

// No step takes less than no time: such a figure is damage, or a clock that was set back.
void drop_impossible_times(ExtractedLog& log) {
  int64_t dropped = 0;
  for (ExtractedStep& step : log.steps) {
    if (!(*step.time_seconds < 0)) continue;
    step.time_seconds = step.time_low = step.time_high = {};
    step.time_source = TimeSource::none;
    ++dropped;
  }
  if (dropped > 0) log.notes.push_back(fmt::format("{} step times below zero were left out", dropped));
}

}  // namespace

void merge_common(ExtractedLog& log, ExtractedLog common) {
  std::vector<LogEvent> events;
  std::merge(std::make_move_iterator(log.events.begin()), std::make_move_iterator(log.events.end()),
             std::make_move_iterator(common.events.begin()), std::make_move_iterator(common.events.end()),
             std::back_inserter(events), by_line);
  log.events = std::move(events);
  for (const auto& [kind, count] : common.event_counts) log.event_counts[kind] += count;
  log.settings.merge(common.settings);
  for (const auto& [key, gb] : common.memory_gb) {
    double& highest = log.memory_gb.try_emplace(key, gb).first->second;
    highest = std::max(highest, gb);
  }
  std::move(common.notes.begin(), common.notes.end(), std::back_inserter(log.notes));
  apply_settings(log.settings, log.facts);
  merge_facts(log.facts, common.facts);
  place_events(log);
}

void label_steps(ExtractedLog& log, bool evaluation_in_times) {
  drop_impossible_times(log);
  set_intervals(log);
  add_nan_events(log);
  if (evaluation_in_times) label_pauses(log, EventKind::evaluation, &ExtractedStep::with_evaluation);
  label_pauses(log, EventKind::checkpoint, &ExtractedStep::with_checkpoint);
}

}  // namespace tprimat

#include "extract/finish_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "extract/stated_facts.h"

namespace tprimat::logs {
namespace {

bool by_line(const LogEvent& a, const LogEvent& b) { return a.line < b.line; }

// An event that names no step is placed at the last one reported before it; a NaN or a skipped update, which is
// reported while its step runs, at the next one of its attempt.
void place_events(ExtractedLog& log) {
  size_t next = 0;
  for (LogEvent& event : log.events) {
    while (next < log.steps.size() && log.steps[next].line < event.line) ++next;
    if (event.step >= 0) continue;
    const bool runs_on =
        next < log.steps.size() && (next == 0 || log.steps[next].attempt == log.steps[next - 1].attempt);
    const bool is_of_running_step = event.kind == EventKind::skipped_update || event.kind == EventKind::nan;
    if (is_of_running_step && runs_on)
      event.step = log.steps[next].step;
    else if (next > 0)
      event.step = log.steps[next - 1].step;
  }
}

// Where the records count skipped updates, the lines between them are not needed.
void drop_repeated_skips(const ExtractedLog& log, ExtractedLog& common) {
  const auto told = log.event_counts.find(EventKind::skipped_update);
  if (told == log.event_counts.end() || told->second == 0) return;
  common.event_counts.erase(EventKind::skipped_update);
  std::erase_if(common.events, [](const LogEvent& event) { return event.kind == EventKind::skipped_update; });
}

// A record's time is the mean over the steps since the record before, where the log reports every n-th.
void set_interval(ExtractedLog& log, size_t i) {
  ExtractedStep& step = log.steps[i];
  if (step.mean_of != 1 || step.single) return;
  const bool follows = i > 0 && log.steps[i - 1].attempt == step.attempt;
  const bool leads = i + 1 < log.steps.size() && log.steps[i + 1].attempt == step.attempt;
  int64_t interval = 1;
  if (follows)
    interval = step.step - log.steps[i - 1].step;
  else if (leads && log.steps[i + 1].step - step.step == step.step)
    interval = step.step;  // the first record of a run from its start: 10, 20, ...
  if (interval > 1 && interval <= 1'000'000) step.mean_of = static_cast<int32_t>(interval);
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
  // If more than half of all records hold a pause, they are measured with it.
  if (2 * labelled.size() > log.steps.size()) return;
  for (const size_t index : labelled) log.steps[index].*label = true;
}

// As above, where the reader set the labels.
void drop_usual_label(ExtractedLog& log, bool ExtractedStep::*label) {
  const auto count = std::count_if(log.steps.begin(), log.steps.end(), [&](const auto& step) { return step.*label; });
  if (2 * count <= std::ssize(log.steps)) return;
  for (ExtractedStep& step : log.steps) step.*label = false;
}

// Every NaN loss or gradient norm is an event, even if the dialect does not report it.
class NanEvents {
 public:
  explicit NanEvents(const ExtractedLog& log) {
    for (const LogEvent& event : log.events)
      if (event.kind == EventKind::nan) told_.insert(event.step);
  }
  void look_at(const ExtractedStep& step, ExtractedLog& log) {
    const bool nan_loss = step.loss && std::isnan(*step.loss), nan_norm = step.grad_norm && std::isnan(*step.grad_norm);
    if ((!nan_loss && !nan_norm) || told_.count(step.step) > 0) return;
    if (++log.event_counts[EventKind::nan] <= k_max_events)
      events_.push_back({EventKind::nan,
                         step.line,
                         step.rank,
                         step.step,
                         {},
                         {},
                         nan_loss ? "the loss is not a number" : "the gradient norm is not a number"});
  }
  void add_to(ExtractedLog& log) {
    const auto middle = static_cast<std::ptrdiff_t>(log.events.size());
    std::move(events_.begin(), events_.end(), std::back_inserter(log.events));
    std::inplace_merge(log.events.begin(), log.events.begin() + middle, log.events.end(), by_line);
  }

 private:
  std::set<int64_t> told_;
  std::vector<LogEvent> events_;
};

// A negative time comes from damage or from a clock that was set back.
bool drop_impossible_time(ExtractedStep& step) {
  if (!(*step.time_seconds < 0)) return false;
  step.time_seconds = step.time_low = step.time_high = {};
  step.time_source = TimeSource::none;
  return true;
}

// In one pass, as the steps of a long log do not fit into the cache.
void settle_steps(ExtractedLog& log) {
  NanEvents nans(log);
  int64_t dropped = 0;
  for (size_t i = 0; i < log.steps.size(); ++i) {
    dropped += drop_impossible_time(log.steps[i]) ? 1 : 0;
    set_interval(log, i);
    nans.look_at(log.steps[i], log);
  }
  if (dropped > 0) log.notes.push_back(fmt::format("{} negative step times are ignored", dropped));
  nans.add_to(log);
}

// Of two runs that write to one log at their own speeds, each record of the slower one goes back, and the next of the
// faster one goes on beyond: "step 1 follows step 6, step 7 follows step 1". A restart repeats the steps between.
int64_t count_false_restarts(const std::vector<ExtractedStep>& steps) {
  int64_t count = 0, reached = -1;  // the last step of the attempt before
  bool goes_on = false;
  for (size_t i = 1; i < steps.size(); ++i) {
    const ExtractedStep &before = steps[i - 1], &step = steps[i];
    if (step.attempt != before.attempt) {
      reached = before.step, goes_on = false;
    } else if (!goes_on && before.step < reached && step.step > reached && reached - before.step > 1) {
      goes_on = true;
      ++count;
    }
  }
  return count;
}

std::string find_mixture(const ExtractedLog& log) {
  constexpr int64_t k_enough = 3;
  if (log.steps.empty()) return "";
  if (2 * log.disputed > std::ssize(log.steps))
    return fmt::format("{} steps are reported twice with different losses and times", log.disputed);
  const int64_t restarts = log.steps.back().attempt - log.steps.front().attempt;
  if (restarts == 0) return "";
  const int64_t not_real = count_false_restarts(log.steps);
  if (not_real < k_enough || 2 * not_real <= restarts) return "";
  return fmt::format("after {} of {} returns to an earlier step, the next record jumps past the step reached before",
                     not_real, restarts);
}

}  // namespace

void merge_common(ExtractedLog& log, ExtractedLog common) {
  drop_repeated_skips(log, common);
  std::vector<LogEvent> events;
  std::merge(std::make_move_iterator(log.events.begin()), std::make_move_iterator(log.events.end()),
             std::make_move_iterator(common.events.begin()), std::make_move_iterator(common.events.end()),
             std::back_inserter(events), by_line);
  log.events = std::move(events);
  for (const auto& [kind, count] : common.event_counts) log.event_counts[kind] += count;
  StatedFacts stated = gather_facts(log, common);
  log.facts = std::move(stated.facts);
  log.settings = std::move(stated.settings);
  log.dropped_settings.merge(common.dropped_settings);
  for (const auto& [key, gb] : common.memory_gb) {
    double& highest = log.memory_gb.try_emplace(key, gb).first->second;
    highest = std::max(highest, gb);
  }
  std::move(common.notes.begin(), common.notes.end(), std::back_inserter(log.notes));
  place_events(log);
}

void label_steps(ExtractedLog& log, const Dialect* dialect) {
  log.mixed = find_mixture(log);
  settle_steps(log);
  if (dialect != nullptr && dialect->labels_own_pauses) {
    drop_usual_label(log, &ExtractedStep::with_evaluation);
    return drop_usual_label(log, &ExtractedStep::with_checkpoint);
  }
  if (dialect == nullptr || dialect->evaluation_in_times)
    label_pauses(log, EventKind::evaluation, &ExtractedStep::with_evaluation);
  label_pauses(log, EventKind::checkpoint, &ExtractedStep::with_checkpoint);
}

}  // namespace tprimat::logs

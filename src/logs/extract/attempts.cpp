#include "extract/attempts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/error.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

using Steps = std::span<const ExtractedStep>;

// The steps of each attempt, in the order of the log.
std::vector<Steps> split_by_attempt(const std::vector<ExtractedStep>& steps) {
  if (!steps.empty() && steps.front().attempt == steps.back().attempt) return {Steps(steps)};  // they only grow
  std::vector<Steps> attempts;
  for (size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
    while (end < steps.size() && steps[end].attempt == steps[begin].attempt) ++end;
    attempts.emplace_back(steps.data() + begin, end - begin);
  }
  return attempts;
}

bool is_close(double a, double b, double share) {
  return std::abs(a - b) <= share * std::max(std::abs(a), std::abs(b));
}

// The figure that all steps share; nothing if they differ or lack it.
Figure common_figure(Steps steps, Figure ExtractedStep::*member) {
  const Figure first = steps.front().*member;
  const auto is_first = [&](const ExtractedStep& step) { return step.*member == first; };
  return first.finite() && *first > 0 && std::all_of(steps.begin(), steps.end(), is_first) ? first : Figure();
}

// Number of devices: the rate of all devices over the rate of one.
Figure implied_devices(Steps steps) {
  std::vector<double> ratios;
  for (const ExtractedStep& step : steps)
    if (step.tokens_per_second.finite() && step.tokens_per_second_per_gpu.finite() &&
        *step.tokens_per_second_per_gpu > 0)
      ratios.push_back(*step.tokens_per_second / *step.tokens_per_second_per_gpu);
  if (ratios.empty()) return {};
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return std::round(*middle);
}

// A batch may grow during a training, so the batch of the same step, or of the last one before it, is the reference.
Figure batch_before(Steps before, int64_t step) {
  const auto after = std::upper_bound(before.begin(), before.end(), step,
                                      [](int64_t wanted, const ExtractedStep& each) { return wanted < each.step; });
  return after == before.begin() ? before.front().global_batch_size : std::prev(after)->global_batch_size;
}

std::vector<std::string> differing_work(Steps before, Steps after) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* name, Figure a, Figure b, double tolerance) {
    if (a.finite() && b.finite() && *a > 0 && *b > 0 && !is_close(*a, *b, tolerance))
      differences.push_back(fmt::format("{} {:.0f} and {:.0f}", name, *a, *b));
  };
  compare("global batch size", batch_before(before, after.front().step), after.front().global_batch_size, 0);
  compare("tokens per step", common_figure(before, &ExtractedStep::tokens),
          common_figure(after, &ExtractedStep::tokens), 1e-3);
  compare("devices", implied_devices(before), implied_devices(after), 0.2);  // rates are rounded
  return differences;
}

std::optional<int64_t> whole_count(Figure figure) {
  return figure.finite() && *figure >= 1 && *figure < 1e15 ? std::optional(std::llround(*figure)) : std::nullopt;
}

// What the records up to that line stated last.
std::optional<int64_t> total_at(const std::vector<LoggedFacts::StatedTotal>& totals, int64_t line) {
  std::optional<int64_t> steps;
  for (const LoggedFacts::StatedTotal& each : totals)
    if (each.line <= line) steps = each.steps;
  return steps;
}

// Facts that the log states once may belong to another run. The records of this run take precedence.
void correct_facts(ExtractedLog& log) {
  if (log.steps.empty()) return;
  LoggedFacts& facts = log.facts;
  facts.max_steps = total_at(facts.totals, log.steps.back().line);
  const auto batch = whole_count(common_figure(log.steps, &ExtractedStep::global_batch_size));
  const auto tokens = whole_count(common_figure(log.steps, &ExtractedStep::tokens));
  if (batch) facts.global_batch_size = batch;
  if (tokens && batch) facts.sequence_length = *tokens % *batch == 0 ? std::optional(*tokens / *batch) : std::nullopt;
  const Figure devices = implied_devices(log.steps);
  if (facts.gpu_count && devices.finite() && !is_close(static_cast<double>(*facts.gpu_count), *devices, 0.2))
    facts.gpu_count = whole_count(devices);
}

// Keeps the events of lines [from, to), and counts them. If the log has more events of a kind than were kept, some of
// these lines may have lost theirs, and the count is unknown.
void keep_events(ExtractedLog& log, int64_t from, int64_t to) {
  const auto counts = std::exchange(log.event_counts, {});
  std::map<EventKind, int64_t> kept;
  std::set<EventKind> not_known;
  for (const LogEvent& event : log.events) {
    const auto all = counts.find(event.kind);
    const bool is_last = ++kept[event.kind] == k_max_events && all != counts.end() && all->second > k_max_events;
    if (all == counts.end() || (is_last && event.line < to)) not_known.insert(event.kind);
  }
  std::erase_if(log.events, [&](const LogEvent& event) { return event.line < from || event.line >= to; });
  for (const LogEvent& event : log.events) ++log.event_counts[event.kind];
  for (const EventKind kind : not_known) {
    log.event_counts.erase(kind);
    const std::string note =
        fmt::format("the log has more than {} events of kind {}: the count for this part is unknown", k_max_events,
                    enum_name(kind));
    if (std::find(log.notes.begin(), log.notes.end(), note) == log.notes.end()) log.notes.push_back(note);
  }
}

// A copy with attempts [first, end) only, without the memory peaks, which belong to the whole log.
ReadLog cut_out(const ReadLog& read, const std::vector<Steps>& attempts, size_t first, size_t end) {
  constexpr int64_t k_last_line = std::numeric_limits<int64_t>::max();
  ReadLog part = read;
  part.log.steps.assign(attempts[first].begin(), attempts[end - 1].end());
  part.log.records = 0;
  for (const ExtractedStep& step : part.log.steps) part.log.records += step.reports;
  part.log.memory_gb.clear();
  keep_events(part.log, first == 0 ? 0 : attempts[first].front().line,
              end == attempts.size() ? k_last_line : attempts[end].front().line);
  return part;
}

// The parts of a run whose records show different work.
std::vector<ReadLog> split_by_work(ReadLog run) {
  const std::vector<Steps> attempts = split_by_attempt(run.log.steps);
  std::vector<ReadLog> parts;
  size_t first = 0;
  std::vector<std::string> differs = run.differs;
  for (size_t i = 1; i < attempts.size(); ++i) {
    auto differences = differing_work(attempts[i - 1], attempts[i]);
    if (differences.empty()) continue;
    parts.push_back(cut_out(run, attempts, first, i));
    parts.back().differs = std::exchange(differs, std::move(differences));
    first = i;
  }
  if (parts.empty()) {
    parts.push_back(std::move(run));  // `return {..}` would copy its steps
    return parts;
  }
  parts.push_back(cut_out(run, attempts, first, attempts.size()));
  parts.back().differs = std::move(differs);
  for (ReadLog& part : parts) correct_facts(part.log);
  return parts;
}

}  // namespace

void number_attempts(ReadLog& read) {
  std::vector<ReadLog> runs;
  for (ReadLog& run : std::exchange(read.earlier, {}))
    for (ReadLog& part : split_by_work(std::move(run))) runs.push_back(std::move(part));
  for (ReadLog& part : split_by_work(std::move(read))) runs.push_back(std::move(part));
  int64_t attempts = 0;
  for (ReadLog& run : runs) {
    if (run.log.steps.empty()) continue;
    const int64_t shift = attempts - run.log.steps.front().attempt;
    if (shift != 0)
      for (ExtractedStep& step : run.log.steps)
        step.attempt =
            static_cast<int16_t>(std::min<int64_t>(step.attempt + shift, std::numeric_limits<int16_t>::max()));
    attempts = run.log.steps.back().attempt + int64_t{1};
  }
  read = std::move(runs.back());
  runs.pop_back();
  read.attempts = std::max<int64_t>(attempts, 1);
  read.earlier = std::move(runs);
}

namespace {

// "1: steps 1 to 25, 2: steps 20 to 40"
std::string list_attempts(const std::vector<const ReadLog*>& runs) {
  constexpr size_t k_shown = 20;
  std::vector<std::string> list;
  for (const ReadLog* run : runs)
    for (const Steps steps : split_by_attempt(run->log.steps)) {
      if (list.size() == k_shown) return fmt::format("{} ...", join(list, ", "));
      list.push_back(
          fmt::format("{}: steps {} to {}", steps.front().attempt + 1, steps.front().step, steps.back().step));
    }
  return join(list, ", ");
}

}  // namespace

ReadLog select_attempt(const ReadLog& read, int64_t attempt) {
  std::vector<const ReadLog*> runs;
  for (const ReadLog& run : read.earlier) runs.push_back(&run);
  runs.push_back(&read);
  for (const ReadLog* run : runs) {
    const std::vector<Steps> attempts = split_by_attempt(run->log.steps);
    for (size_t i = 0; i < attempts.size(); ++i) {
      if (attempts[i].front().attempt + 1 != attempt) continue;
      ReadLog selected = attempts.size() == 1 ? *run : cut_out(*run, attempts, i, i + 1);
      selected.earlier.clear();
      selected.attempts = read.attempts, selected.lines = read.lines, selected.forced = read.forced;
      selected.selected = true;
      return selected;
    }
  }
  throw Error(Problem{fmt::format("the log has {} attempt{} ({}), but no attempt {}", read.attempts,
                                  read.attempts == 1 ? "" : "s", list_attempts(runs), attempt),
                      "--attempt",
                      read.attempts == 1 ? std::string("omit --attempt")
                                         : fmt::format("give a number from 1 to {}, or all", read.attempts)});
}

std::vector<ReadLog> choose_attempts(ReadLog read, const AttemptChoice& choice) {
  std::vector<ReadLog> wanted;
  if (choice.number) {
    wanted.push_back(select_attempt(read, *choice.number));
  } else if (choice.all && read.attempts > 1) {
    for (int64_t attempt = 1; attempt <= read.attempts; ++attempt) wanted.push_back(select_attempt(read, attempt));
  } else {
    wanted.push_back(std::move(read));
  }
  return wanted;
}

}  // namespace tprimat::logs

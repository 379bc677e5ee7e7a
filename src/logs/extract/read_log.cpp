#include "extract/read_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "extract/attempts.h"
#include "extract/common/failure_cause.h"
#include "extract/common/setting_names.h"
#include "extract/dialects.h"
#include "extract/finish_log.h"
#include "extract/scan_text.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

constexpr int64_t k_settle_after = int64_t{4} << 20;    // bytes, when one dialect is certain
constexpr int64_t k_settle_anyway = int64_t{64} << 20;  // bytes, when one fits at all
constexpr size_t k_max_document = size_t{512} << 20;
constexpr int64_t k_max_idle_steps = 1000;       // that readers of a possible next run collect without result
constexpr size_t k_max_held = size_t{16} << 20;  // bytes of held lines, which may begin another run
constexpr double k_certain = 0.9;
constexpr size_t k_head = size_t{1} << 16;  // bytes that identify a document

// Ends of a line: "\n", or the "\r" with which a progress bar rewrites itself.
size_t line_begin(std::string_view text, size_t floor, size_t position) {
  const auto* start = text.data() + floor;
  const size_t length = position - floor;
  const auto* newline = static_cast<const char*>(::memrchr(start, '\n', length));
  const size_t from = newline == nullptr ? floor : static_cast<size_t>(newline - text.data()) + 1;
  const auto* rewrite = static_cast<const char*>(::memrchr(text.data() + from, '\r', position - from));
  return rewrite == nullptr ? from : static_cast<size_t>(rewrite - text.data()) + 1;
}

// Looks a little further each time: a progress bar may rewrite itself a million times before the next newline.
size_t line_end(std::string_view text, size_t position) {
  for (size_t length = 256; position < text.size(); length *= 2) {
    const std::string_view window = text.substr(position, length);
    const size_t newline = std::min(window.find('\n'), window.size());
    const size_t end = std::min(window.substr(0, newline).find('\r'), newline);
    if (end < window.size()) return position + end;
    position += window.size();
  }
  return text.size();
}

// Drops a step whose line was cut before its loss: the missing loss would count as NaN.
void drop_cut_step(ExtractedLog& log, int64_t cut_line) {
  if (log.steps.size() < 2) return;
  const ExtractedStep &last = log.steps.back(), &before = *(log.steps.end() - 2);
  if (last.line != cut_line || last.loss || last.skipped || !before.loss) return;
  log.records -= last.reports;
  log.steps.pop_back();
}

std::vector<const Dialect*> candidates(const std::string& format) {
  std::vector<const Dialect*> list;
  if (!format.empty()) list.push_back(&find_dialect(format));
  if (format.empty())
    for (const Dialect& dialect : dialects()) list.push_back(&dialect);
  std::erase_if(list, [](const Dialect* dialect) { return dialect->make_reader == nullptr; });
  return list;
}

}  // namespace

LogReading::LogReading(const ReadOptions& options)
    : now_(candidates(options.format)), settled_(!options.format.empty()) {
  build_scanner();
}

void LogReading::build_scanner() {
  std::vector<std::string_view> anchors;
  anchor_readers_.clear();
  step_lines_.clear(), other_lines_.clear();
  for (const auto& [anchor, mask] : now_.anchors()) {
    anchors.push_back(anchor);
    anchor_readers_.push_back(mask);
  }
  scanner_.emplace(anchors);
}

void LogReading::settle() {
  if (settled_ || bytes_ < k_settle_after || !held_.empty() || waits()) return;
  const ReaderSet::Winner winner = now_.best();
  if (winner.candidate == nullptr || winner.candidate->log->log().records == 0) return;
  if (bytes_ < k_settle_anyway && winner.confidence < k_certain) return;
  next_.reset();
  now_.keep_only(*winner.candidate);
  settled_ = true;
  build_scanner();
}

void LogReading::show(const Shown& shown) {
  if (!held_.empty()) return hold(shown);
  const LogLine line = cleaner_.clean(shown.raw, line_number_);
  const int64_t steps = now_.steps();
  const bool is_step_line = step_lines_.contains(shown.anchors);
  if (steps > 0 && !is_step_line && may_begin_run(shown, line)) return;
  now_.read_line(line, shown.readers, is_cut_);
  if (is_step_line && now_.steps() == steps) {  // its anchors do not tell
    step_lines_.erase(shown.anchors);
    other_lines_.insert(shown.anchors);
    if (may_begin_run(shown, line)) held_.back().is_read = true;
  }
}

// Passes the line to the readers of a possible next run. True: it states facts and is held back.
bool LogReading::may_begin_run(const Shown& shown, const LogLine& line) {
  if (!next_ || next_->steps() > k_max_idle_steps) next_.emplace(now_.dialects());
  const int64_t steps = next_->steps();
  next_->read_line(line, shown.readers, is_cut_);
  if (next_->steps() > steps) {
    if (other_lines_.contains(shown.anchors)) return false;
    next_.reset();
    step_lines_.insert(shown.anchors);
    return false;
  }
  if (!next_->states_facts()) return false;
  ReaderSet fresh(now_.dialects());
  fresh.read_line(line, shown.readers, is_cut_);
  if (fresh.states_facts() || steps > 0)
    *next_ = std::move(fresh);  // earlier lines belong to the run before
  else
    next_->forget_end_of_run();  // the facts of the line need earlier lines
  held_.push_back({std::string(shown.raw), line_number_, shown.readers, is_cut_, line.rank});
  held_bytes_ = shown.raw.size();
  return true;
}

void LogReading::hold(const Shown& shown) {
  const int64_t steps = next_->steps();
  const LogLine line = cleaner_.clean(shown.raw, line_number_);
  held_.push_back({std::string(shown.raw), line_number_, shown.readers, is_cut_, line.rank});
  held_bytes_ += shown.raw.size();
  next_->read_line(line, shown.readers, is_cut_);
  if (next_->steps() > steps)
    decide();
  else if (held_bytes_ > k_max_held)
    release();
}

void LogReading::decide() {
  const ReaderSet::Winner winner = now_.best();
  if (winner.candidate == nullptr || now_.steps_of(*winner.candidate->dialect) == 0) return release();
  const Dialect& dialect = *winner.candidate->dialect;
  if (next_->steps_of(dialect) == 0) return;  // a step of another dialect
  const StatedFacts before = now_.facts_by(dialect), after = next_->facts_by(dialect);
  if (auto differences = differing_facts(before, after); !differences.empty()) {
    earlier_.push_back(finish_run(now_));
    differs_ = std::move(differences);
    now_ = std::move(*next_);
    next_.reset();
    held_.clear();
    return;
  }
  // Ranks print independently, some late: facts of another rank do not show a new start.
  if (held_.front().rank == held_.back().rank && repeats_facts(before, after)) {
    now_.announce_attempt();
    now_.adopt_settings(*next_);
  }
  now_.set_max_steps(dialect, after.facts.max_steps);  // a training may be prolonged
  release();
}

// The held lines belong to the current run.
void LogReading::release() {
  next_.reset();
  for (const HeldLine& line : std::exchange(held_, {}))
    if (!line.is_read) now_.read_line(cleaner_.clean(line.raw, line.number), line.readers, line.is_cut);
}

// A carriage return that was copied as the two characters "^M" is still a separator.
void LogReading::read_line(Shown line) {
  const std::string_view whole = line.raw;
  for (size_t begin = 0;;) {
    const size_t caret = whole.find("^M", begin);
    line.raw = whole.substr(begin, caret - begin);
    show(line);
    if (caret == std::string_view::npos) return;
    begin = caret + 2;
  }
}

void LogReading::add_lines(std::string_view lines) {
  bytes_ += static_cast<int64_t>(lines.size());
  if (std::memchr(lines.data(), '\x1b', lines.size()) != nullptr) lines = LineCleaner::strip_escapes(lines, stripped_);
  scanner_->scan(lines, hits_);
  size_t cursor = 0, counted = 0;  // bytes dealt with; bytes whose newlines are in line_number_
  size_t hit = 0;
  while (cursor < lines.size()) {
    while (hit < hits_.size() && hits_[hit].position < cursor) ++hit;
    const bool wanted = waits();
    if (!wanted && hit == hits_.size()) break;
    const size_t begin = wanted ? cursor : line_begin(lines, cursor, hits_[hit].position);
    const size_t end = line_end(lines, wanted ? cursor : hits_[hit].position);
    Shown line{lines.substr(begin, end - begin)};
    for (; hit < hits_.size() && hits_[hit].position < end; ++hit) {
      line.readers |= anchor_readers_[hits_[hit].anchor];
      line.anchors |= uint64_t{1} << hits_[hit].anchor % 64;
    }
    line_number_ += count_newlines(lines.substr(counted, begin - counted));
    counted = begin;
    is_cut_ = end == lines.size();
    if (is_cut_) cut_line_ = line_number_;
    const bool is_copy = held_.empty() && now_.read_copy(line.raw, line.readers);
    if (!is_copy && !line.raw.empty()) read_line(line);
    cursor = end + 1;
  }
  line_number_ += count_newlines(lines.substr(counted));
  settle();
}

ReadLog LogReading::finish_run(ReaderSet& readers) {
  readers.finish();
  const ReaderSet::Winner winner = readers.best();
  ReadLog result;
  result.lines = line_number_ - 1;
  result.bytes = bytes_;
  result.differs = std::exchange(differs_, {});
  if (winner.candidate != nullptr) {
    result.dialect = winner.candidate->dialect;
    result.confidence = winner.confidence;
    result.runner_up = winner.runner_up;
  }
  result.log = readers.take(winner);
  return result;
}

// Ends a start that reported no step. If it belongs to another run, only its events are kept.
void LogReading::end_held() {
  const ReaderSet::Winner winner = now_.best();
  const auto differences = winner.candidate == nullptr ? std::vector<std::string>()
                                                       : differing_facts(now_.facts_by(*winner.candidate->dialect),
                                                                         next_->facts_by(*winner.candidate->dialect));
  if (differences.empty()) return release();
  next_->finish();
  for (LogEvent& event : next_->take_common_events()) winner.candidate->log->add_event(std::move(event));
  winner.candidate->log->note(
      fmt::format("the last start in the log has other settings ({}) and reports no step", join(differences, ", ")));
  next_.reset();
  held_.clear();
}

ReadLog LogReading::finish() {
  if (!held_.empty()) end_held();
  ReadLog result = finish_run(now_);
  drop_cut_step(result.log, cut_line_);
  result.earlier = std::move(earlier_);
  number_attempts(result);
  return result;
}

namespace {

const Dialect* find_document(std::string_view head, const std::string& format) {
  for (const Dialect& dialect : dialects()) {
    if (dialect.is_document == nullptr) continue;
    if (format.empty() ? dialect.is_document(head) : dialect.id == format) return &dialect;
  }
  return nullptr;
}

ReadLog read_document(const Dialect& dialect, const std::string& whole) {
  LogBuilder log;
  dialect.read_document(whole, log);
  ReadLog result;
  result.log = log.take();
  apply_settings(result.log.settings, result.log.facts);
  label_steps(result.log, &dialect);
  result.dialect = &dialect;
  result.confidence = 1.0;
  result.bytes = static_cast<int64_t>(whole.size());
  result.lines = count_newlines(whole);
  return result;
}

// Why a log has no steps, for the user.
std::string explain_nothing(const ReadLog& read) {
  const auto& time_to_train = read.log.time_to_train;
  if (!read.log.steps.empty() || (time_to_train && time_to_train->status)) return "";
  if (read.bytes == 0) return "the file is empty";
  if (!read.log.events.empty()) return "";  // its events explain more
  if (read.dialect != nullptr) return fmt::format("it looks like {}, but reports no step", read.dialect->title);
  if (read.forced) return "it contains no records of the requested format";
  return "no known log format was recognised";
}

ReadLog read_source(LogSource& source, const ReadOptions& options) {
  std::string_view lines = source.next_lines();
  std::string other_kind = describe_other_kind(lines.substr(0, k_head)), last_error;
  ReadLog result;
  if (const Dialect* document = find_document(lines.substr(0, k_head), options.format)) {
    std::string whole(lines);
    whole += source.rest(k_max_document);
    result = read_document(*document, whole);
  } else {
    LogReading reading(options);
    const auto goes_on = [&] { return options.max_bytes == 0 || source.bytes() < options.max_bytes; };
    for (; !lines.empty(); lines = goes_on() ? source.next_lines() : std::string_view()) reading.add_lines(lines);
    result = reading.finish();
  }
  result.forced = !options.format.empty();
  if (!source.complaint().empty()) result.log.notes.push_back(source.complaint());
  if (result.dialect == nullptr && !speaks_of_training(result.log)) {
    if (const auto end = explain_end(result.log)) last_error = fmt::format(" (it ends with: {})", end->sentence);
    result.log.events.clear(), result.log.event_counts.clear();
  }
  result.why_nothing = explain_nothing(result);
  if (result.dialect == nullptr && !result.why_nothing.empty()) result.why_nothing += last_error;
  if (!result.why_nothing.empty() && !other_kind.empty() && result.dialect == nullptr)
    result.why_nothing = "it is " + other_kind;
  return result;
}

}  // namespace

ReadLog read_log(const std::filesystem::path& path, const ReadOptions& options) {
  LogSource source(path);
  try {
    return read_source(source, options);
  } catch (const Error& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems)
      if (problem.where.empty()) problem.where = path.string();
    throw Error(std::move(problems), error.status());
  }
}

ReadLog read_log_text(std::string bytes, const ReadOptions& options) {
  LogSource source(std::move(bytes));
  return read_source(source, options);
}

}  // namespace tprimat::logs

#include "extract/read_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/error.h"
#include "extract/common/failure_cause.h"
#include "extract/common/setting_names.h"
#include "extract/dialects.h"
#include "extract/finish_log.h"
#include "extract/other_kinds.h"
#include "extract/scan_text.h"

namespace tprimat {
namespace {

constexpr int64_t k_settle_after = int64_t{4} << 20;    // bytes, when one dialect is certain
constexpr int64_t k_settle_anyway = int64_t{64} << 20;  // bytes, when one fits at all
constexpr size_t k_most_document = size_t{512} << 20;
constexpr int k_patience = 512;  // lines of other ranks between two pieces of one record
constexpr double k_certain = 0.9;
constexpr size_t k_head = size_t{1} << 16;  // bytes that tell a document's kind

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

// A log that is still written, or was cut, may end within a number: "tps: 6,5".
std::string_view without_cut_number(std::string_view text) {
  const size_t end = text.find_last_not_of("0123456789.,+-eE");
  const std::string_view tail = text.substr(end == std::string_view::npos ? 0 : end + 1);
  return tail.find_first_of("0123456789") == std::string_view::npos ? text : text.substr(0, text.size() - tail.size());
}

}  // namespace

LogReading::LogReading(const ReadOptions& options) : common_log_(std::make_shared<LogBuilder>()) {
  for (const Dialect& reader : common_readers()) add_candidate(reader, common_log_);
  common_count_ = candidates_.size();
  if (!options.format.empty()) {
    const Dialect& forced = find_dialect(options.format);
    if (forced.make_reader != nullptr) add_candidate(forced, std::make_shared<LogBuilder>());
    settled_ = true;
  } else {
    for (const Dialect& dialect : dialects())
      if (dialect.make_reader != nullptr) add_candidate(dialect, std::make_shared<LogBuilder>());
  }
  build_scanner();
}

void LogReading::add_candidate(const Dialect& dialect, std::shared_ptr<LogBuilder> log) {
  CHECK(candidates_.size() < 64);
  candidates_.push_back({&dialect, dialect.make_reader(), std::move(log)});
}

void LogReading::build_scanner() {
  std::map<std::string_view, uint64_t> readers;
  for (size_t i = 0; i < candidates_.size(); ++i)
    for (const std::string_view anchor : candidates_[i].dialect->anchors) readers[anchor] |= uint64_t{1} << i;
  std::vector<std::string_view> anchors;
  anchor_readers_.clear();
  for (const auto& [anchor, mask] : readers) {
    anchors.push_back(anchor);
    anchor_readers_.push_back(mask);
  }
  scanner_.emplace(anchors);
}

LogReading::Candidate* LogReading::best() {
  Candidate* found = nullptr;
  double highest = 0;
  runner_up_.clear();
  for (size_t i = common_count_; i < candidates_.size(); ++i) {
    const double confidence = candidates_[i].reader->confidence(candidates_[i].log->log());
    if (confidence > highest) {
      if (found != nullptr) runner_up_ = found->dialect->id;
      highest = confidence, found = &candidates_[i];
    } else if (confidence > 0 && runner_up_.empty()) {
      runner_up_ = candidates_[i].dialect->id;
    }
  }
  return found;
}

void LogReading::settle() {
  if (settled_ || bytes_ < k_settle_after || anybody_waits_) return;
  Candidate* winner = best();
  if (winner == nullptr || winner->log->log().records == 0) return;
  if (bytes_ < k_settle_anyway && winner->reader->confidence(winner->log->log()) < k_certain) return;
  Candidate kept = std::move(*winner);
  candidates_.resize(common_count_);
  candidates_.push_back(std::move(kept));
  settled_ = true;
  build_scanner();
}

void LogReading::show(std::string_view raw, uint64_t readers) {
  LogLine line = cleaner_.clean(raw, line_number_);
  if (line.ranks > 0 && !common_log_->facts().gpu_count) common_log_->facts().gpu_count = line.ranks;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& candidate = candidates_[i];
    if (i == common_count_ && is_cut_) line.text = without_cut_number(line.text);
    const bool continued = candidate.wants_more && (candidate.wanted_rank == line.rank || line.rank < 0);
    if (!continued && (readers >> i & 1) == 0) {
      if (candidate.wants_more && --candidate.patience <= 0) candidate.wants_more = false;
      continue;
    }
    const bool wants_more = candidate.reader->read_line(line, *candidate.log);
    if (!wants_more && candidate.wants_more && !continued)
      continue;  // another rank's line between two of the one wanted
    candidate.wants_more = wants_more;
    candidate.wanted_rank = line.rank;
    candidate.patience = k_patience;
  }
  anybody_waits_ = std::any_of(candidates_.begin(), candidates_.end(), [](const Candidate& c) { return c.wants_more; });
}

// A carriage return that was copied as the two characters "^M" still separates what it separated.
void LogReading::read_line(std::string_view raw, uint64_t readers) {
  for (;;) {
    const size_t caret = raw.find("^M");
    show(raw.substr(0, caret), readers);
    if (caret == std::string_view::npos) return;
    raw.remove_prefix(caret + 2);
  }
}

bool LogReading::read_copy(std::string_view raw, uint64_t readers) {
  Candidate& chosen = candidates_.back();
  return settled_ && !anybody_waits_ && readers == uint64_t{1} << common_count_ &&
         chosen.reader->read_copy(raw, *chosen.log);
}

void LogReading::add_lines(std::string_view lines) {
  scanner_->scan(lines, hits_);
  size_t cursor = 0, counted = 0;  // bytes dealt with; bytes whose newlines are in line_number_
  size_t hit = 0;
  while (cursor < lines.size()) {
    while (hit < hits_.size() && hits_[hit].position < cursor) ++hit;
    if (!anybody_waits_ && hit == hits_.size()) break;
    const size_t begin = anybody_waits_ ? cursor : line_begin(lines, cursor, hits_[hit].position);
    const size_t end = line_end(lines, anybody_waits_ ? cursor : hits_[hit].position);
    uint64_t readers = 0;
    for (; hit < hits_.size() && hits_[hit].position < end; ++hit) readers |= anchor_readers_[hits_[hit].anchor];
    line_number_ += count_newlines(lines.substr(counted, begin - counted));
    counted = begin;
    const std::string_view raw = lines.substr(begin, end - begin);
    is_cut_ = end == lines.size();
    if (!read_copy(raw, readers) && !raw.empty()) read_line(raw, readers);
    cursor = end + 1;
  }
  line_number_ += count_newlines(lines.substr(counted));
  bytes_ += static_cast<int64_t>(lines.size());
  settle();
}

ReadLog LogReading::finish() {
  for (Candidate& candidate : candidates_) candidate.reader->finish(*candidate.log);
  ReadLog result;
  result.lines = line_number_ - 1;
  result.bytes = bytes_;
  if (Candidate* winner = best()) {
    result.dialect = winner->dialect;
    result.confidence = winner->reader->confidence(winner->log->log());
    result.runner_up = runner_up_;
    result.log = winner->log->take();
  }
  merge_common(result.log, common_log_->take());
  label_steps(result.log, result.dialect == nullptr || result.dialect->evaluation_in_times);
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
  label_steps(result.log, dialect.evaluation_in_times);
  result.dialect = &dialect;
  result.confidence = 1.0;
  result.bytes = static_cast<int64_t>(whole.size());
  result.lines = count_newlines(whole);
  return result;
}

// Why a log without steps has none, for the person who hoped for some.
std::string explain_nothing(const ReadLog& read) {
  if (!read.log.steps.empty()) return "";
  if (read.bytes == 0) return "the file is empty";
  if (!read.log.events.empty()) return "";  // its events tell more
  if (read.dialect != nullptr) return fmt::format("it looks like {}, but reports no step", read.dialect->title);
  if (read.forced) return "it holds nothing of the format that was named";
  return "no known log format was recognised";
}

ReadLog read_source(LogSource& source, const ReadOptions& options) {
  std::string_view lines = source.next_lines();
  std::string other_kind = describe_other_kind(lines.substr(0, k_head)), last_words;
  ReadLog result;
  if (const Dialect* document = find_document(lines.substr(0, k_head), options.format)) {
    std::string whole(lines);
    whole += source.rest(k_most_document);
    result = read_document(*document, whole);
  } else {
    LogReading reading(options);
    for (; !lines.empty(); lines = source.next_lines()) reading.add_lines(lines);
    result = reading.finish();
  }
  result.forced = !options.format.empty();
  if (!source.complaint().empty()) result.log.notes.push_back(source.complaint());
  if (result.dialect == nullptr && !speaks_of_training(result.log)) {
    if (const auto end = explain_end(result.log)) last_words = fmt::format(" (its last words: {})", end->sentence);
    result.log.events.clear(), result.log.event_counts.clear();
  }
  result.why_nothing = explain_nothing(result);
  if (result.dialect == nullptr && !result.why_nothing.empty()) result.why_nothing += last_words;
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

}  // namespace tprimat

#include "extract/reader_set.h"

#include <algorithm>

#include "base/check.h"
#include "extract/dialects.h"
#include "extract/finish_log.h"

namespace tprimat::logs {
namespace {

constexpr int k_patience = 512;  // lines of other ranks between two pieces of one record

// A log that is still written, or was cut, may end within a number: "tps: 6,5".
std::string_view without_cut_number(std::string_view text) {
  const size_t end = text.find_last_not_of("0123456789.,+-eE");
  const std::string_view tail = text.substr(end == std::string_view::npos ? 0 : end + 1);
  return tail.find_first_of("0123456789") == std::string_view::npos ? text : text.substr(0, text.size() - tail.size());
}

}  // namespace

ReaderSet::ReaderSet(std::vector<const Dialect*> dialects)
    : dialects_(std::move(dialects)), common_log_(std::make_shared<LogBuilder>()) {
  for (const Dialect& reader : common_readers()) candidates_.push_back({&reader, reader.make_reader(), common_log_});
  common_count_ = candidates_.size();
  for (const Dialect* dialect : dialects_)
    candidates_.push_back({dialect, dialect->make_reader(), std::make_shared<LogBuilder>()});
  CHECK(candidates_.size() <= 64);
}

std::map<std::string_view, uint64_t> ReaderSet::anchors() const {
  std::map<std::string_view, uint64_t> readers;
  for (size_t i = 0; i < candidates_.size(); ++i)
    for (const std::string_view anchor : candidates_[i].dialect->anchors) readers[anchor] |= uint64_t{1} << i;
  return readers;
}

void ReaderSet::read_line(LogLine line, uint64_t readers, bool is_cut) {
  if (line.ranks > 0 && !ranks_ && !common_log_->facts().gpu_count) ranks_ = line.ranks;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    Candidate& candidate = candidates_[i];
    if (i == common_count_ && is_cut) line.text = without_cut_number(line.text), line.is_cut = true;
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

bool ReaderSet::read_copy(std::string_view raw, uint64_t readers) {
  Candidate& chosen = candidates_.back();
  return dialects_.size() == 1 && !anybody_waits_ && readers == uint64_t{1} << common_count_ &&
         chosen.reader->read_copy(raw, *chosen.log);
}

ReaderSet::Winner ReaderSet::best() {
  Winner winner;
  for (size_t i = common_count_; i < candidates_.size(); ++i) {
    const double confidence = candidates_[i].reader->confidence(candidates_[i].log->log());
    if (confidence > winner.confidence) {
      if (winner.candidate != nullptr) winner.runner_up = winner.candidate->dialect->id;
      winner.confidence = confidence, winner.candidate = &candidates_[i];
    } else if (confidence > 0 && winner.runner_up.empty()) {
      winner.runner_up = candidates_[i].dialect->id;
    }
  }
  return winner;
}

void ReaderSet::keep_only(const Candidate& winner) {
  const auto index = static_cast<size_t>(&winner - candidates_.data());
  std::swap(candidates_[common_count_], candidates_[index]);
  candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(common_count_) + 1, candidates_.end());
  dialects_ = {candidates_.back().dialect};
}

int64_t ReaderSet::steps() const {
  int64_t steps = 0;
  for (size_t i = common_count_; i < candidates_.size(); ++i)
    steps += candidates_[i].log->log().records + candidates_[i].reader->steps_waiting();
  return steps;
}

int64_t ReaderSet::steps_of(const Dialect& dialect) const {
  const Candidate* candidate = find(dialect);
  return candidate != nullptr ? candidate->log->log().records + candidate->reader->steps_waiting() : 0;
}

bool ReaderSet::states_facts() const {
  return std::any_of(candidates_.begin(), candidates_.end(), [](const Candidate& c) { return c.log->states_facts(); });
}

const ReaderSet::Candidate* ReaderSet::find(const Dialect& dialect) const {
  for (const Candidate& candidate : candidates_)
    if (candidate.dialect == &dialect) return &candidate;
  return nullptr;
}

StatedFacts ReaderSet::facts_by(const Dialect& dialect) const {
  const Candidate* candidate = find(dialect);
  static const ExtractedLog k_nothing;
  StatedFacts stated = gather_facts(candidate != nullptr ? candidate->log->log() : k_nothing, common_log_->log());
  if (!stated.facts.gpu_count) stated.facts.gpu_count = ranks_;
  return stated;
}

void ReaderSet::set_max_steps(const Dialect& dialect, std::optional<int64_t> steps) {
  if (const Candidate* candidate = find(dialect); candidate != nullptr && steps)
    candidate->log->facts().max_steps = steps;
}

void ReaderSet::adopt_settings(const ReaderSet& later) {
  common_log_->replace_settings(later.common_log_->log().settings);
  for (size_t i = common_count_; i < candidates_.size(); ++i)
    if (const Candidate* other = later.find(*candidates_[i].dialect); other != nullptr)
      candidates_[i].log->replace_settings(other->log->log().settings);
}

void ReaderSet::forget_end_of_run() {
  for (Candidate& candidate : candidates_) candidate.log->forget_end_of_run();
}

void ReaderSet::announce_attempt() {
  for (Candidate& candidate : candidates_) candidate.log->announce_attempt();
}

void ReaderSet::finish() {
  if (ranks_) common_log_->facts().gpu_count = ranks_;
  for (Candidate& candidate : candidates_) candidate.reader->finish(*candidate.log);
}

ExtractedLog ReaderSet::take(const Winner& winner) {
  ExtractedLog log;
  if (winner.candidate != nullptr) log = winner.candidate->log->take();
  merge_common(log, common_log_->take());
  label_steps(log, winner.candidate == nullptr ? nullptr : winner.candidate->dialect);
  return log;
}

std::vector<LogEvent> ReaderSet::take_common_events() { return common_log_->take().events; }

}  // namespace tprimat::logs

#include "extract/log_builder.h"

#include <algorithm>
#include <utility>

#include "extract/stated_facts.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_event_text = 300;  // bytes of an event's text

void fill(Figure& kept, Figure other) {
  if (!kept) kept = other;
}

void raise(Figure& kept, Figure other) {
  if (!kept || (other && *other > *kept)) kept = other;
}

bool same_figure(Figure a, Figure b) { return !a || !b || *a == *b || (std::isnan(*a) && std::isnan(*b)); }

// Whether two lines report the same figures of the same step.
bool is_copy(const ExtractedStep& a, const ExtractedStep& b) {
  return same_figure(a.loss, b.loss) && same_figure(a.time_seconds, b.time_seconds) && a.unix_time == b.unix_time;
}

// Whether the records belong to different runs: ranks of one run may print their own losses, but all wait for the
// slowest.
bool denies(const ExtractedStep& kept, const ExtractedStep& other) {
  constexpr double k_same_loss = 0.01, k_same_time = 1.2;
  if (!kept.loss.finite() || !other.loss.finite() || !kept.time_seconds.finite() || !other.time_seconds.finite())
    return false;
  const double a = *kept.time_seconds, b = *other.time_seconds;
  return std::abs(*kept.loss - *other.loss) > k_same_loss * std::abs(*kept.loss) && a > 0 && b > 0 &&
         (a > k_same_time * b || b > k_same_time * a);
}

void merge_step(ExtractedStep& kept, const ExtractedStep& other) {
  kept.reports += other.reports;
  if (kept.time_source == TimeSource::none) {
    kept.time_source = other.time_source, kept.time_seconds = other.time_seconds;
    kept.time_low = other.time_low, kept.time_high = other.time_high;
  }
  for (const auto member : {&ExtractedStep::unix_time,
                            &ExtractedStep::loss,
                            &ExtractedStep::learning_rate,
                            &ExtractedStep::grad_norm,
                            &ExtractedStep::loss_scale,
                            &ExtractedStep::global_batch_size,
                            &ExtractedStep::tokens,
                            &ExtractedStep::samples_seen,
                            &ExtractedStep::tokens_seen,
                            &ExtractedStep::tflops_per_gpu,
                            &ExtractedStep::mfu,
                            &ExtractedStep::tokens_per_second,
                            &ExtractedStep::tokens_per_second_per_gpu,
                            &ExtractedStep::samples_per_second,
                            &ExtractedStep::power_watts_per_gpu,
                            &ExtractedStep::energy_joules_per_gpu,
                            &ExtractedStep::skipped_updates,
                            &ExtractedStep::expert_load,
                            &ExtractedStep::dropped_share,
                            &ExtractedStep::aux_loss,
                            &ExtractedStep::z_loss})
    fill(kept.*member, other.*member);
  for (const auto member :
       {&ExtractedStep::memory_allocated_gb, &ExtractedStep::memory_reserved_gb, &ExtractedStep::memory_used_gb})
    raise(kept.*member, other.*member);
  kept.skipped |= other.skipped;
  kept.with_evaluation |= other.with_evaluation;
  kept.with_checkpoint |= other.with_checkpoint;
}

}  // namespace

ExtractedStep LogBuilder::start_step(const LogLine& line, int64_t step) {
  ExtractedStep record;
  record.step = step;
  record.line = line.number;
  record.rank = line.rank;
  record.unix_time = line.unix_time;
  return record;
}

void LogBuilder::begin_attempt(const ExtractedStep& record) {
  if (attempt_ == std::numeric_limits<int16_t>::max()) return;
  ++attempt_;
  const int64_t before = log_.steps.empty() ? -1 : log_.steps.back().step;
  attempt_start_ = log_.steps.size();
  LogEvent event{EventKind::restart, record.line, record.rank, record.step, {}, {}, {}};
  event.text = "step " + std::to_string(record.step) + " follows step " + std::to_string(before);
  add_event(std::move(event));
}

ExtractedStep& LogBuilder::add(const ExtractedStep& record) {
  log_.records += record.reports;
  if (attempt_ == std::numeric_limits<int16_t>::max()) return ignore(record);
  if (std::exchange(announced_, false) && !log_.steps.empty() && record.step > log_.steps.back().step)
    begin_attempt(record);
  RankProgress& progress = progress_of(record.rank);
  if (record.step < progress.last_step && progress.attempt == attempt_) {
    const ExtractedStep* earlier = find(record.step);
    if (!earlier || !is_copy(*earlier, record)) begin_attempt(record);
  }
  const bool straggler = progress.attempt == attempt_ && record.step < progress.last_step;
  if (!straggler) progress.last_step = record.step;
  progress.attempt = attempt_;
  if (ExtractedStep* same = find(record.step)) {
    if (!same->disputed && denies(*same, record)) same->disputed = true, ++log_.disputed;
    merge_step(*same, record);
    last_ = static_cast<size_t>(same - log_.steps.data());
    return *same;
  }
  // Ranks are not synchronised: a late step is inserted in order.
  constexpr std::ptrdiff_t k_max_late = 1024;
  if (log_.steps.size() > attempt_start_ + k_max_late && (log_.steps.end() - k_max_late)->step > record.step)
    begin_attempt(record);
  auto place = log_.steps.end();
  while (place != log_.steps.begin() + static_cast<std::ptrdiff_t>(attempt_start_) && (place - 1)->step > record.step)
    --place;
  const auto at = place - log_.steps.begin();
  constexpr size_t k_many = 4096, k_very_many = size_t{1} << 18;  // memory that no step reaches is never touched
  if (log_.steps.size() == log_.steps.capacity() && log_.steps.size() >= k_many)
    log_.steps.reserve(std::max(k_very_many, 4 * log_.steps.size()));
  place = log_.steps.insert(log_.steps.begin() + at, record);
  place->attempt = attempt_;
  last_ = static_cast<size_t>(place - log_.steps.begin());
  return *place;
}

LogBuilder::RankProgress& LogBuilder::progress_of(int32_t rank) {
  constexpr size_t k_low_ranks = 8192;
  const auto index = static_cast<size_t>(rank + 1);
  if (rank < -1 || index >= k_low_ranks) return high_ranks_[rank];
  if (index >= low_ranks_.size()) low_ranks_.resize(index + 1);
  return low_ranks_[index];
}

bool LogBuilder::add_copy(int32_t rank) {
  ExtractedStep* step = last();
  if (step == nullptr) return false;
  RankProgress& progress = progress_of(rank);
  if (progress.attempt == attempt_ && progress.last_step > step->step) return false;
  progress = {step->step, attempt_};
  ++step->reports;
  ++log_.records;
  return true;
}

ExtractedStep& LogBuilder::ignore(const ExtractedStep& record) {
  note("the log returns to earlier steps more than 32 000 times: the rest was not read");
  ignored_ = record;
  return ignored_;
}

ExtractedStep* LogBuilder::last() { return log_.steps.empty() ? nullptr : &log_.steps[last_]; }

int64_t LogBuilder::last_step() const { return log_.steps.empty() ? -1 : log_.steps[last_].step; }

ExtractedStep* LogBuilder::find(int64_t step) {
  const auto first = log_.steps.begin() + static_cast<std::ptrdiff_t>(attempt_start_);
  if (first == log_.steps.end() || log_.steps.back().step < step) return nullptr;  // most records are the next step
  const auto found = std::lower_bound(first, log_.steps.end(), step,
                                      [](const ExtractedStep& each, int64_t wanted) { return each.step < wanted; });
  return found != log_.steps.end() && found->step == step ? &*found : nullptr;
}

void LogBuilder::add_event(EventKind kind, const LogLine& line, std::string_view text) {
  add_event({kind, line.number, line.rank, last_step(), {}, {}, std::string(text)});
}

void LogBuilder::add_evaluation(const LogLine& line, int64_t step, Figure loss, std::string text, Figure seconds) {
  add_event({EventKind::evaluation, line.number, line.rank, step, seconds, loss, std::move(text)});
}

void LogBuilder::add_event(LogEvent event) {
  if (++log_.event_counts[event.kind] > k_max_events) return;
  event.text = printable(std::string_view(event.text).substr(0, k_max_event_text));
  log_.events.push_back(std::move(event));
}

void LogBuilder::add_memory(int32_t rank, MemoryKind kind, double gb) {
  constexpr size_t k_max_ranks = 1 << 16;
  if (!std::isfinite(gb) || gb < 0) return;
  const auto [entry, is_new] = log_.memory_gb.try_emplace({rank, kind}, gb);
  entry->second = std::max(entry->second, gb);
  if (is_new && log_.memory_gb.size() > k_max_ranks) log_.memory_gb.erase(entry);
}

void LogBuilder::note(const std::string& sentence) {
  if (std::find(log_.notes.begin(), log_.notes.end(), sentence) == log_.notes.end()) log_.notes.push_back(sentence);
}

void LogBuilder::set_total(const std::string& key, const std::string& value) {
  set(key, value);
  totals_.push_back(printable(key));
}

void LogBuilder::forget_end_of_run() {
  for (const std::string& key : totals_) log_.settings.erase(key);
  totals_.clear();
  log_.events.clear(), log_.event_counts.clear(), log_.memory_gb.clear(), log_.notes.clear();
}

bool LogBuilder::states_facts() const {
  const auto is_total = [&](const auto& setting) {
    return std::find(totals_.begin(), totals_.end(), setting.first) != totals_.end();
  };
  return started_ || states_decisive_fact(log_.facts) ||
         !std::all_of(log_.settings.begin(), log_.settings.end(), is_total);
}

void LogBuilder::replace_settings(const std::map<std::string, std::string>& later) {
  for (auto& [key, value] : log_.settings)
    if (const auto found = later.find(key); found != later.end()) value = found->second;
}

void LogBuilder::set(const std::string& key, const std::string& value) {
  constexpr size_t k_max_settings = 10000;
  if (log_.settings.size() < k_max_settings) log_.settings.emplace(printable(key), printable(value));
}

void LogBuilder::drop_setting(const std::string& key, const std::string& why) {
  constexpr size_t k_max_dropped = 1000;
  if (log_.dropped_settings.size() < k_max_dropped) log_.dropped_settings.emplace(printable(key), printable(why));
}

}  // namespace tprimat::logs

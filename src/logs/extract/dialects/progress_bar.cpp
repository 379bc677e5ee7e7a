#include "extract/dialects/progress_bar.h"

#include <algorithm>
#include <limits>

#include "text/words.h"

namespace tprimat::logs {
namespace {

// Removes the digits at the end.
std::optional<int64_t> take_last_digits(std::string_view& text) {
  size_t begin = text.size();
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  std::string_view digits = text.substr(begin);
  const auto value = take_whole(digits);
  if (value) text.remove_suffix(text.size() - begin);
  return value;
}

// Removes "06:19" or "43:24:54" from the start; in seconds.
std::optional<double> take_duration(std::string_view& text) {
  std::string_view rest = text;
  const auto first = take_whole(rest, 7);
  if (!first || !take_char(rest, ':')) return std::nullopt;
  const auto second = take_whole(rest, 2);
  if (!second) return std::nullopt;
  double seconds = static_cast<double>(*first) * 60.0 + static_cast<double>(*second);
  if (take_char(rest, ':')) {
    const auto third = take_whole(rest, 2);
    if (!third) return std::nullopt;
    seconds = seconds * 60.0 + static_cast<double>(*third);
  }
  text = rest;
  return seconds;
}

// "57.45s/it" and "1.27it/s" as seconds for one; nothing for "?it/s".
std::optional<RoundedNumber> parse_pace(std::string_view text, std::string_view& unit) {
  std::string_view rest = text;
  if (!take_number(rest)) return std::nullopt;
  const std::string_view digits = text.substr(0, text.size() - rest.size());
  const auto shown = parse_human_number(digits);
  const size_t slash = rest.find('/');
  if (!shown || !(shown->low > 0) || slash == std::string_view::npos) return std::nullopt;
  if (trim(rest.substr(0, slash)) == "s") {
    unit = trim(rest.substr(slash + 1));
    return shown;
  }
  if (trim(rest.substr(slash + 1)) != "s") return std::nullopt;
  unit = trim(rest.substr(0, slash));
  return RoundedNumber{1.0 / shown->value, 1.0 / shown->high, 1.0 / shown->low};
}

// The text between the brackets: "06:19<07:13, 2.10s/it, loss=2.5".
bool read_brackets(std::string_view text, ProgressBar& bar) {
  const auto elapsed = take_duration(text);
  if (!elapsed) return false;
  bar.reading.elapsed_seconds = *elapsed;
  const size_t comma = text.find(',');
  if (comma == std::string_view::npos) return true;
  text = trim(text.substr(comma + 1));
  const size_t next = text.find(',');
  const std::string_view first = text.substr(0, next);
  if (first.find('=') == std::string_view::npos) {
    bar.reading.seconds_per_count = parse_pace(first, bar.unit);
    text = next == std::string_view::npos ? std::string_view() : trim(text.substr(next + 1));
  }
  bar.postfix = text;
  return true;
}

// The title before "47%|###   |", which ends with a colon.
std::string_view find_title(std::string_view before) {
  if (const size_t percent = before.rfind("%|"); percent != std::string_view::npos) {
    before = before.substr(0, percent);
    while (!before.empty() && (is_digit(before.back()) || before.back() == '.')) before.remove_suffix(1);
  }
  before = trim(before);
  if (before.empty() || before.back() != ':') return {};
  while (!before.empty() && (before.back() == ':' || before.back() == ' ')) before.remove_suffix(1);
  return trim(before);
}

// "7/15 " at the end of what stands before the bracket.
bool read_count(std::string_view before, ProgressBar& bar) {
  before = trim(before);
  const auto total = take_last_digits(before);
  if (!total || before.empty() || before.back() != '/') return false;
  before.remove_suffix(1);
  const auto count = take_last_digits(before);
  if (!count) return false;
  bar.reading.count = *count;
  bar.reading.total = *total;
  bar.title = find_title(before);
  return true;
}

void set_time(ExtractedStep& step, const RoundedNumber& seconds, TimeSource source) {
  step.time_seconds = seconds.value;
  step.time_low = std::max(0.0, seconds.low);
  step.time_high = seconds.high;
  step.time_source = source;
}

constexpr size_t k_max_states = 1 << 16;

bool counts_steps(const ProgressBar& bar) {
  return bar.title.empty() && bar.reading.total > 0 && bar.reading.count <= bar.reading.total &&
         (bar.unit.empty() || bar.unit == "it");
}

}  // namespace

std::optional<ProgressBar> take_progress_bar(std::string_view& text) {
  // Bounds the search per bracket, so that a line of brackets does not take quadratic time.
  constexpr size_t k_max_before = 512, k_max_inside = 4096;
  for (size_t open = text.find(" ["); open != std::string_view::npos; open = text.find(" [", open + 1)) {
    ProgressBar bar;
    const size_t first = open - std::min(open, k_max_before);
    if (!read_count(text.substr(first, open - first), bar)) continue;
    const std::string_view behind = text.substr(open + 2, k_max_inside);
    const size_t length = std::min(behind.find(']'), behind.size());
    if (!read_brackets(behind.substr(0, length), bar)) continue;
    text.remove_prefix(std::min(text.size(), open + 2 + length + 1));
    return bar;
  }
  return std::nullopt;
}

std::optional<std::string_view> postfix_value(std::string_view postfix, std::string_view key) {
  while (!postfix.empty()) {
    const size_t comma = postfix.find(", ");
    const std::string_view item = trim(postfix.substr(0, comma));
    if (item.size() > key.size() && item[key.size()] == '=' && item.substr(0, key.size()) == key)
      return item.substr(key.size() + 1);
    if (comma == std::string_view::npos) break;
    postfix.remove_prefix(comma + 2);
  }
  return std::nullopt;
}

void derive_step_time(const BarReading& from, const BarReading& to, ExtractedStep& step) {
  constexpr double k_clock_seconds = 10.0;  // below this the clock's second is more than a tenth
  const int64_t counts = to.count - from.count;
  if (counts <= 0 || counts > std::numeric_limits<int32_t>::max()) return;
  const auto steps = static_cast<double>(counts);
  const double passed = to.elapsed_seconds - from.elapsed_seconds;
  step.mean_of = static_cast<int32_t>(counts);
  if (passed < k_clock_seconds && to.seconds_per_count) {
    set_time(step, *to.seconds_per_count, TimeSource::from_rate);
  } else if (passed > 0) {
    set_time(step, {passed / steps, (passed - 1.0) / steps, (passed + 1.0) / steps}, TimeSource::from_timestamps);
  }
}

bool TrainingBar::follow(const ProgressBar& bar, std::optional<int64_t> total, int64_t starts, int64_t line) {
  if (!counts_steps(bar)) return false;
  const BarReading& reading = bar.reading;
  if (total ? reading.total != *total : total_ != 0 && reading.total != total_) {
    other_ = reading;
    return false;
  }
  other_.reset();
  if (total_ != reading.total) {
    total_ = reading.total;
    last_.reset(), first_.reset();
    states_.clear();
  }
  if (last_ && reading.count == 0 && last_->count > 0 && !begin_again(starts)) return false;
  if (last_ && reading.count < last_->count) return false;
  starts_ = starts;
  if (last_ && reading.count == last_->count) return true;
  const bool leaps = last_ && last_->count == 0 && reading.count > 1;
  if (!first_ || leaps) first_ = reading;
  last_ = reading;
  keep(reading, line);
  return true;
}

// The bar is back at 0: a new attempt, or the next rank.
bool TrainingBar::begin_again(int64_t starts) {
  const bool announced = starts > starts_;
  if (!announced && (starts > 0 || last_->count == total_)) return false;
  last_.reset(), first_.reset();
  ++restarts_;
  return true;
}

void TrainingBar::expect_steps() {
  if (!other_ || (last_ && last_->count > 0 && last_->count < total_)) return;
  total_ = other_->total;
  last_ = first_ = other_;
  other_.reset();
  states_.clear();
}

// A long log has millions of states; every second one is dropped, repeatedly if needed.
void TrainingBar::keep(const BarReading& reading, int64_t line) {
  if (skipped_++ < skip_ && reading.count > 1) return;
  skipped_ = 0;
  states_.push_back({line, reading});
  if (states_.size() < k_max_states) return;
  for (size_t i = 0; i < states_.size() / 2; ++i) states_[i] = states_[2 * i];
  states_.resize(states_.size() / 2);
  skip_ = 2 * skip_ + 1;
}

int64_t TrainingBar::add_steps(LogBuilder& log) const {
  int64_t added = 0;
  const State* before = nullptr;
  for (const State& state : states_) {
    const bool goes_on = before != nullptr && before->reading.count < state.reading.count;
    const bool leaps = goes_on && before->reading.count == 0 && state.reading.count > 1;
    if (state.reading.count > 0 && !leaps) {
      LogLine line;
      line.number = state.line;
      ExtractedStep step = LogBuilder::start_step(line, state.reading.count);
      BarReading from = state.reading;  // without an earlier state, only the pace is available
      --from.count;
      derive_step_time(goes_on ? before->reading : from, state.reading, step);
      log.add(step);
      ++added;
    }
    before = &state;
  }
  return added;
}

}  // namespace tprimat::logs

#include "extract/dialects/training_bar.h"

namespace tprimat::logs {
namespace {

constexpr size_t k_max_states = 1 << 16;

bool counts_steps(const ProgressBar& bar) {
  return bar.title.empty() && bar.reading.total > 0 && bar.reading.count <= bar.reading.total &&
         (bar.unit.empty() || bar.unit == "it");
}

}  // namespace

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

// The bar is back at 0: of a new attempt, or of the next rank.
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

// A long log has millions of states; of those every second is left out as often as needed.
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
      BarReading from = state.reading;  // with nothing before it only the pace tells
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

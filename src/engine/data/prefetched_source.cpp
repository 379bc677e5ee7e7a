#include "data/prefetched_source.h"

#include <algorithm>

#include "base/check.h"

namespace tprimat::engine {

PrefetchedSource::PrefetchedSource(const TokenSource& source, PrefetchPlan plan)
    : source_(source), plan_(std::move(plan)) {
  CHECK(plan_.sequence_length > 0 && plan_.ahead > 0 && plan_.sample_at);
  thread_ = std::thread([this] { run(); });
}

PrefetchedSource::~PrefetchedSource() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<PrefetchedSource::Sample> PrefetchedSource::take(int64_t index) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty() || finished_; });
  if (ready_.empty() || ready_.front().index != index) return std::nullopt;
  Sample sample = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return sample;
}

void PrefetchedSource::read_sample(int64_t index, std::span<int32_t> tokens) const {
  std::optional<Sample> sample = take(index);
  if (!sample) return source_.read_sample(index, tokens);
  if (sample->failure) std::rethrow_exception(sample->failure);
  CHECK(tokens.size() == sample->tokens.size());
  std::copy(sample->tokens.begin(), sample->tokens.end(), tokens.begin());
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(*sample));
}

std::optional<PrefetchedSource::Sample> PrefetchedSource::wait_for_free_buffer() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.size() < plan_.ahead || stopping_; });
  if (stopping_) return std::nullopt;
  if (spare_.empty()) return Sample();
  Sample sample = std::move(spare_.back());
  spare_.pop_back();
  return sample;
}

void PrefetchedSource::read(Sample& sample, int64_t index) const {
  sample = Sample{index, std::move(sample.tokens), nullptr};
  sample.tokens.resize(static_cast<size_t>(plan_.sequence_length) + 1);
  try {
    source_.read_sample(index, sample.tokens);
  } catch (...) {
    sample.failure = std::current_exception();
  }
}

void PrefetchedSource::run() {
  for (int64_t n = 0;; ++n) {
    std::optional<Sample> sample = wait_for_free_buffer();
    const std::optional<int64_t> index = sample ? plan_.sample_at(n) : std::nullopt;
    if (!index) break;
    read(*sample, *index);
    {
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(*sample));
    }
    changed_.notify_all();
  }
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
}

}  // namespace tprimat::engine

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "data/token_source.h"

namespace tprimat::engine {

struct PrefetchPlan {
  int64_t sequence_length = 0;  // SL, tokens
  // The sample that will be asked for as the n-th, n = 0, 1, ...; absent: no more are planned. Called on the thread
  // that reads ahead.
  std::function<std::optional<int64_t>(int64_t)> sample_at;
  size_t ahead = 8;  // samples that lie ready; memory: ahead · (SL + 1) · 4 bytes
};

// A source that reads the planned samples ahead, on a thread of its own, so that a page fault in the data set never
// stops a step. Samples that are not the next of the plan are read when asked for. What reading threw is thrown where
// that sample is asked for.
class PrefetchedSource final : public TokenSource {
 public:
  PrefetchedSource(const TokenSource& source, PrefetchPlan plan);  // starts reading; `source` must outlive it
  ~PrefetchedSource() override;                                    // stops after the sample in hand
  PrefetchedSource(const PrefetchedSource&) = delete;
  PrefetchedSource& operator=(const PrefetchedSource&) = delete;

  void read_sample(int64_t index, std::span<int32_t> tokens) const override;

 private:
  struct Sample {
    int64_t index = 0;
    std::vector<int32_t> tokens;
    std::exception_ptr failure;
  };
  void run();
  std::optional<Sample> wait_for_free_buffer();  // a buffer to fill; absent: stop
  std::optional<Sample> take(int64_t index) const;
  void read(Sample& sample, int64_t index) const;

  const TokenSource& source_;
  const PrefetchPlan plan_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::deque<Sample> ready_;
  mutable std::vector<Sample> spare_;
  bool finished_ = false, stopping_ = false;
  std::thread thread_;
};

}  // namespace tprimat::engine

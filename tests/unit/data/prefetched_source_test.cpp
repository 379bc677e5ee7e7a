#include "data/prefetched_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "base/error.h"

namespace tprimat::engine {
namespace {

// Sample i is i, i+1, ...; sample `bad` throws.
class CountingSource final : public TokenSource {
 public:
  explicit CountingSource(int64_t bad = -1) : bad_(bad) {}
  void read_sample(int64_t index, std::span<int32_t> tokens) const override {
    ++reads;
    if (index == bad_) throw Error(Problem{"no such token", "file.bin", ""});
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(index) + static_cast<int32_t>(i);
  }
  mutable std::atomic<int> reads = 0;

 private:
  int64_t bad_;
};

PrefetchPlan plan_of(int64_t samples) {
  return {3, [samples](int64_t n) { return n < samples ? std::optional(10 * n) : std::nullopt; }, 4};
}

std::vector<int32_t> read(const TokenSource& source, int64_t index) {
  std::vector<int32_t> tokens(4);
  source.read_sample(index, tokens);
  return tokens;
}

TEST(PrefetchedSource, ReadsEachPlannedSampleOnceAndInOrder) {
  const CountingSource source;
  const PrefetchedSource ahead(source, plan_of(200));
  for (int32_t n = 0; n < 200; ++n)
    EXPECT_EQ(read(ahead, 10 * n), (std::vector<int32_t>{10 * n, 10 * n + 1, 10 * n + 2, 10 * n + 3}));
  EXPECT_EQ(source.reads, 200);
}

TEST(PrefetchedSource, ReadsWhatWasNotPlannedWhenAsked) {
  const CountingSource source;
  const PrefetchedSource ahead(source, plan_of(2));
  EXPECT_EQ(read(ahead, 7).front(), 7);
  EXPECT_EQ(read(ahead, 0).front(), 0);
  EXPECT_EQ(read(ahead, 10).front(), 10);
  EXPECT_EQ(read(ahead, 20).front(), 20);  // behind the plan's end
  EXPECT_EQ(source.reads, 4);
}

TEST(PrefetchedSource, ReadsAheadButNotWithoutBound) {
  const CountingSource source;
  const PrefetchedSource ahead(source, plan_of(1000));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (source.reads < 4 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(source.reads, 4);
}

TEST(PrefetchedSource, ThrowsWhereTheBadSampleIsAskedFor) {
  const CountingSource source(20);
  const PrefetchedSource ahead(source, plan_of(1000));
  EXPECT_EQ(read(ahead, 0).front(), 0);
  EXPECT_EQ(read(ahead, 10).front(), 10);
  EXPECT_THROW(read(ahead, 20), Error);
  EXPECT_EQ(read(ahead, 30).front(), 30);
}

}  // namespace
}  // namespace tprimat::engine

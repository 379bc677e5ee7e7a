#include "data/synthetic_corpus.h"

#include <algorithm>

#include "base/check.h"

namespace tprimat::engine {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr uint64_t k_golden_gamma = 0x9e3779b97f4a7c15;

constexpr uint64_t k_weight_one = uint64_t{1} << 40;
constexpr int32_t k_band = 16;  // ranks whose successors form one cycle

}  // namespace

uint64_t scramble_bits(uint64_t bits) {
  bits += k_golden_gamma;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

uint64_t RandomStream::next_bits() {
  const uint64_t bits = scramble_bits(state_);
  state_ += k_golden_gamma;
  return bits;
}

uint64_t RandomStream::next_below(uint64_t limit) {
  return static_cast<uint64_t>((static_cast<Wide>(next_bits()) * limit) >> 64);
}

SyntheticCorpus::SyntheticCorpus(int64_t vocab_size, int64_t seed) : seed_(static_cast<uint64_t>(seed)) {
  CHECK(vocab_size > 0);
  cumulative_weights_.reserve(static_cast<size_t>(vocab_size));
  uint64_t sum = 0;
  for (uint64_t rank = 1; rank <= static_cast<uint64_t>(vocab_size); ++rank)
    cumulative_weights_.push_back(sum += k_weight_one / rank);
}

int32_t SyntheticCorpus::draw_fresh(RandomStream& random) const {
  const uint64_t point = random.next_below(cumulative_weights_.back());
  return static_cast<int32_t>(std::upper_bound(cumulative_weights_.begin(), cumulative_weights_.end(), point) -
                              cumulative_weights_.begin());
}

// Steps of 5 through a full band of 16, which visits all of it; steps of 1 through the shorter last band.
int32_t SyntheticCorpus::successor(int32_t token) const {
  const int32_t start = token / k_band * k_band;
  const int32_t length = std::min(k_band, static_cast<int32_t>(vocab_size()) - start);
  return start + (token - start + (length == k_band ? 5 : 1)) % length;
}

void SyntheticCorpus::read_sample(int64_t index, std::span<int32_t> tokens) const {
  CHECK(index >= 0);
  RandomStream random(seed_, static_cast<uint64_t>(index));
  const auto length = static_cast<int64_t>(tokens.size());
  for (int64_t start = 0; start < length; start += k_segment) {
    const int64_t end = std::min(start + k_segment, length);
    if (start > 0 && random.next_chance(k_copy_numerator, k_copy_denominator)) {
      const auto from = static_cast<int64_t>(random.next_below(static_cast<uint64_t>(start / k_segment))) * k_segment;
      std::copy_n(tokens.begin() + from, end - start, tokens.begin() + start);
      continue;
    }
    for (int64_t i = start; i < end; ++i) {
      const bool follows = i > 0 && random.next_chance(k_follow_numerator, k_follow_denominator);
      tokens[static_cast<size_t>(i)] = follows ? successor(tokens[static_cast<size_t>(i - 1)]) : draw_fresh(random);
    }
  }
}

}  // namespace tprimat::engine

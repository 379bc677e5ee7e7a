#include "data/random_bits.h"

#include <bit>

#include "base/check.h"

namespace tprimat {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr uint64_t k_golden_gamma = 0x9e3779b97f4a7c15;
constexpr int k_feistel_rounds = 6;

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

Permutation::Permutation(int64_t count, uint64_t seed)
    : count_(static_cast<uint64_t>(count)), seed_(scramble_bits(seed)) {
  CHECK(count > 0);
  half_bits_ = (std::bit_width(count_ - 1) + 1) / 2;
}

uint64_t Permutation::shuffle_once(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_, right = value & mask;
  for (int round = 0; round < k_feistel_rounds; ++round) {
    const uint64_t mixed =
        left ^ (scramble_bits(seed_ + (right * k_feistel_rounds) + static_cast<uint64_t>(round)) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

int64_t Permutation::operator()(int64_t index) const {
  CHECK(index >= 0 && static_cast<uint64_t>(index) < count_);
  auto value = static_cast<uint64_t>(index);
  do {
    value = shuffle_once(value);
  } while (value >= count_);
  return static_cast<int64_t>(value);
}

}  // namespace tprimat

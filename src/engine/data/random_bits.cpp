#include "data/random_bits.h"

namespace tprimat::engine {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr uint64_t k_golden_gamma = 0x9e3779b97f4a7c15;

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

}  // namespace tprimat::engine

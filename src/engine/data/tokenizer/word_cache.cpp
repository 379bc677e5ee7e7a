#include "data/tokenizer/word_cache.h"

#include <algorithm>

namespace tprimat::engine {

WordCache::WordCache() : slots_(k_slots) {}

uint64_t WordCache::hash_long(const char* word, size_t length) {
  constexpr uint64_t k_odd = 0x9e3779b97f4a7c15;
  uint64_t hash = length * k_odd, eight;
  for (size_t at = 0; at + 8 <= length; at += 8) {
    std::memcpy(&eight, word + at, 8);
    hash = (hash ^ eight) * k_odd;
    hash ^= hash >> 29;
  }
  std::memcpy(&eight, word + length - 8, 8);  // overlaps what was read; a long word has more than 16 bytes
  return (hash ^ eight) * k_odd;
}

void WordCache::insert(const Key& key, std::span<const int32_t> tokens) {
  if (words_ >= k_max_words) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    more_.clear();
    letters_.clear();
    words_ = 0;
  }
  size_t at = home_of(key);
  while (slots_[at].length != 0) at = (at + 1) & k_mask;
  Slot& slot = slots_[at];
  slot.low = key.low;
  slot.high = key.high;
  slot.count = static_cast<uint16_t>(tokens.size());
  slot.length = key.length;
  if (key.length > k_short) {
    slot.high = letters_.size();
    letters_.insert(letters_.end(), key.word, key.word + key.length);
  }
  if (tokens.size() <= k_inline) {
    std::copy(tokens.begin(), tokens.end(), slot.tokens);
  } else {
    slot.tokens[0] = static_cast<int32_t>(more_.size());
    more_.insert(more_.end(), tokens.begin(), tokens.end());
  }
  ++words_;
}

}  // namespace tprimat::engine

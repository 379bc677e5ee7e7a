#include "data/tokenizer/word_tokens.h"

#include <algorithm>
#include <bit>

namespace tprimat::engine {
namespace {

constexpr size_t k_short_word = 48;  // tokens; beyond, searching again for every merge costs more than a heap

}  // namespace

MergeTable::MergeTable(size_t merges)
    : slots_(std::bit_ceil(std::max<size_t>(16, 2 * merges))), mask_(slots_.size() - 1) {}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t at = home_of(key);
  while (slots_[at].key != key && slots_[at].key != k_empty) at = (at + 1) & mask_;
  slots_[at] = {key, merge};
}

void WordMerger::merge(std::vector<int32_t>& tokens) {
  if (tokens.size() < 2) return;
  if (tokens.size() <= k_short_word) return merge_short(tokens);
  merge_long(tokens);
}

void WordMerger::merge_short(std::vector<int32_t>& tokens) {
  const auto pair_at = [&](size_t i) { return merges_.find(tokens[i], tokens[i + 1]); };
  ranks_.resize(tokens.size() - 1);
  for (size_t i = 0; i < ranks_.size(); ++i) ranks_[i] = pair_at(i);
  while (!ranks_.empty()) {
    const auto best =
        std::min_element(ranks_.begin(), ranks_.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    if (best->rank == MergeTable::k_none) return;
    const auto at = static_cast<size_t>(best - ranks_.begin());
    tokens[at] = static_cast<int32_t>(best->token);
    tokens.erase(tokens.begin() + static_cast<int64_t>(at) + 1);
    ranks_.erase(best);
    if (at > 0) ranks_[at - 1] = pair_at(at - 1);
    if (at < ranks_.size()) ranks_[at] = pair_at(at);
  }
}

void WordMerger::propose(int32_t at) {
  const Symbol& left = symbols_[static_cast<size_t>(at)];
  if (left.next < 0) return;
  const int32_t right = symbols_[static_cast<size_t>(left.next)].token;
  const MergeTable::Merge merge = merges_.find(left.token, right);
  if (merge.rank == MergeTable::k_none) return;
  heap_.push_back({merge.rank, at, left.token, right});
  std::push_heap(heap_.begin(), heap_.end());
}

void WordMerger::join(const Candidate& candidate) {
  Symbol& left = symbols_[static_cast<size_t>(candidate.at)];
  if (left.merged_away || left.next < 0 || left.token != candidate.left) return;
  Symbol& right = symbols_[static_cast<size_t>(left.next)];
  if (right.token != candidate.right) return;
  left.token = static_cast<int32_t>(merges_.find(left.token, right.token).token);
  left.next = right.next;
  right.merged_away = true;
  if (left.next >= 0) symbols_[static_cast<size_t>(left.next)].previous = candidate.at;
  propose(candidate.at);
  if (left.previous >= 0) propose(left.previous);
}

void WordMerger::merge_long(std::vector<int32_t>& tokens) {
  const auto count = static_cast<int32_t>(tokens.size());
  symbols_.clear();
  heap_.clear();
  for (int32_t i = 0; i < count; ++i)
    symbols_.push_back({tokens[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1, false});
  for (int32_t i = 0; i < count; ++i) propose(i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate candidate = heap_.back();
    heap_.pop_back();
    join(candidate);
  }
  tokens.clear();
  for (const Symbol& symbol : symbols_)
    if (!symbol.merged_away) tokens.push_back(symbol.token);
}

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

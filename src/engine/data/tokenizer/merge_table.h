#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tprimat::engine {

// Byte-pair merges: which two tokens become which, and how early. An open-addressing table over the pair.
class MergeTable {
 public:
  static constexpr uint32_t k_none = std::numeric_limits<uint32_t>::max();
  struct Merge {
    uint32_t rank = k_none;  // lower ranks merge first
    uint32_t token = 0;
  };

  explicit MergeTable(size_t merges);
  void insert(int32_t left, int32_t right, Merge merge);  // a pair given again takes the later rank
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = home_of(key);; at = (at + 1) & mask_)
      if (slots_[at].key == key || slots_[at].key == k_empty) return slots_[at].merge;
  }

 private:
  static constexpr uint64_t k_empty = ~uint64_t{0};
  struct Slot {
    uint64_t key = k_empty;
    Merge merge;
  };
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t home_of(uint64_t key) const { return (key * 0x9e3779b97f4a7c15 >> 32) & mask_; }

  std::vector<Slot> slots_;
  size_t mask_;
};

// Merges the tokens of one word in place until no pair is left that merges: always the pair of the lowest rank, of
// several the leftmost (Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units", 2016).
// Short words by repeated search, long ones with a heap; the same result.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& merges) : merges_(merges) {}
  void merge(std::vector<int32_t>& tokens);

 private:
  struct Symbol {
    int32_t token, previous, next;
    bool merged_away;
  };
  struct Candidate {
    uint32_t rank;
    int32_t at;
    int32_t left, right;
    // std::push_heap keeps the greatest on top: the lowest rank, then the leftmost.
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  void merge_short(std::vector<int32_t>& tokens);
  void merge_long(std::vector<int32_t>& tokens);
  void propose(int32_t at);
  void join(const Candidate& candidate);

  const MergeTable& merges_;
  std::vector<MergeTable::Merge> ranks_;  // of each token with the one after it
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace tprimat::engine

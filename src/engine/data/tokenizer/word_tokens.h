#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
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

// Words of up to 128 bytes and their tokens. One cache line holds two short words (16 bytes) with up to three tokens
// each; longer words, and longer lists of tokens, lie in vectors beside. Forgets everything when full, so memory stays
// bounded. One thread.
class WordCache {
 public:
  static constexpr size_t k_longest = 128;  // bytes

  // A short word's bytes with zeros behind them; a longer one's hash, and where it is.
  struct Key {
    uint64_t low = 0, high = 0;
    const char* word = nullptr;
    uint8_t length = 0;
  };
  // `at` to `end` is a word of 1 to 128 bytes; up to `readable` memory may be read.
  static Key make_key(const char* at, const char* end, const char* readable) {
    const auto length = static_cast<size_t>(end - at);
    if (length > k_short) return {hash_long(at, length), 0, at, static_cast<uint8_t>(length)};
    Key key{0, 0, at, static_cast<uint8_t>(length)};
    if (readable - at < static_cast<ptrdiff_t>(k_short)) {
      char bytes[k_short] = {};
      std::memcpy(bytes, at, length);
      std::memcpy(&key.low, bytes, 8);
      std::memcpy(&key.high, bytes + 8, 8);
      return key;
    }
    std::memcpy(&key.low, at, 8);
    std::memcpy(&key.high, at + 8, 8);
    if (length < 8) key.low &= ~uint64_t{0} >> (64 - 8 * length);
    key.high &= length <= 8 ? 0 : ~uint64_t{0} >> (128 - 8 * length);
    return key;
  }

  WordCache();

  // Appends the word's tokens; false when the word is not known.
  bool append(const Key& key, std::vector<int32_t>& tokens) const {
    for (size_t at = home_of(key);; at = (at + 1) & k_mask) {
      const Slot& slot = slots_[at];
      if (holds(slot, key)) return append_slot(slot, tokens), true;
      if (slot.length == 0) return false;
    }
  }
  void insert(const Key& key, std::span<const int32_t> tokens);  // of a word that is not known

 private:
  static constexpr size_t k_short = 16;                                     // bytes
  static constexpr size_t k_slots = size_t{1} << 18, k_mask = k_slots - 1;  // 8 MiB
  static constexpr size_t k_max_words = k_slots / 2, k_inline = 3;
  struct Slot {
    uint64_t low = 0, high = 0;  // high of a long word: where it begins in letters_
    uint16_t count = 0;
    uint8_t length = 0;             // 0: an empty slot
    int32_t tokens[k_inline] = {};  // or, for a greater count, where they begin in more_
  };

  static uint64_t hash_long(const char* word, size_t length);
  static size_t home_of(const Key& key) {
    const uint64_t mixed = (key.low ^ (key.high * 0x9ddfea08eb382d69)) * 0x9e3779b97f4a7c15;
    return (mixed ^ mixed >> 32) & k_mask;
  }
  bool holds(const Slot& slot, const Key& key) const {
    if (slot.low != key.low || slot.length != key.length) return false;
    if (key.length <= k_short) return slot.high == key.high;
    return std::memcmp(letters_.data() + slot.high, key.word, key.length) == 0;
  }
  void append_slot(const Slot& slot, std::vector<int32_t>& tokens) const {
    const int32_t* first = slot.count <= k_inline ? slot.tokens : more_.data() + slot.tokens[0];
    tokens.insert(tokens.end(), first, first + slot.count);
  }

  std::vector<Slot> slots_;
  std::vector<int32_t> more_;
  std::vector<char> letters_;
  size_t words_ = 0;
};

}  // namespace tprimat::engine

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/word_pattern.h"
#include "data/tokenizer/word_tokens.h"

namespace tprimat::engine {

struct AddedToken {
  std::string content;
  int32_t id = 0;
  bool strip_left = false, strip_right = false;  // takes the white space beside it too
};

// Finds added tokens in text: at the leftmost place where any begins, the longest.
class AddedTokenFinder {
 public:
  struct Match {
    size_t begin, end;  // bytes of the text, with the stripped white space
    int32_t id;
  };

  void add(AddedToken token);
  bool empty() const { return tokens_.empty(); }

  // The first match from byte `from` on.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  static uint64_t edge(size_t node, char byte) { return node << 8 | static_cast<unsigned char>(byte); }
  size_t next_candidate(std::string_view text, size_t from) const;
  std::optional<size_t> longest_at(std::string_view text, size_t at) const;  // index of a token
  Match stripped(std::string_view text, size_t from, size_t at, const AddedToken& token) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<uint64_t, size_t> edges_;      // (node, byte) → node of a trie; node 0 is its root
  std::vector<std::optional<size_t>> ends_ = {{}};  // which token ends at a node
  std::array<bool, 256> begins_{};
  std::string first_bytes_;
};

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
using Vocabulary = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

// What a tokenizer.json with a byte-level BPE says, its tokens as the bytes that they stand for.
struct ByteLevelSpec {
  Vocabulary vocabulary;
  std::array<int32_t, 256> byte_tokens{};  // the token of each single byte; -1 where the vocabulary has none
  MergeTable merges{0};
  WordPattern pattern = WordPattern::gpt2;
  bool add_prefix_space = false;  // a piece that does not begin with a space gets one
  bool ignore_merges = false;     // a word that is in the vocabulary is that token, whatever the merges say
  bool compose = false;           // Unicode normal form C first
  AddedTokenFinder raw_added;     // looked for before that
  AddedTokenFinder composed_added;
  Vocabulary added;
  int64_t vocab_size = 0;
  std::optional<int32_t> end_of_document;
};

// Byte-level BPE as GPT-2 introduced it and the Rust library `tokenizers` computes it.
class ByteLevelBpe final : public Tokenizer {
 public:
  explicit ByteLevelBpe(ByteLevelSpec spec) : spec_(std::move(spec)) {}

  int64_t vocab_size() const override { return spec_.vocab_size; }
  std::optional<int32_t> find_token(std::string_view text) const override;
  std::optional<int32_t> end_of_document() const override { return spec_.end_of_document; }
  std::string describe() const override;
  std::unique_ptr<TextEncoder> make_encoder() const override;

 private:
  ByteLevelSpec spec_;
};

}  // namespace tprimat::engine

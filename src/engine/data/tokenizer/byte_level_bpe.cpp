#include "data/tokenizer/byte_level_bpe.h"

#include <fmt/format.h>

#include <memory>

#include "data/tokenizer/normal_form.h"
#include "data/tokenizer/word_cache.h"

namespace tprimat::engine {
namespace {

class ByteLevelEncoder final : public TextEncoder {
 public:
  explicit ByteLevelEncoder(const ByteLevelSpec& spec)
      : spec_(spec), next_word_(scanner_of(spec.pattern)), merger_(spec.merges) {}

  void encode(std::string_view text, std::vector<int32_t>& tokens) override {
    split_by(spec_.raw_added, text, tokens, [&](std::string_view piece) { encode_normalised(piece, tokens); });
  }

 private:
  // Calls `rest` for what lies between added tokens.
  template <class Rest>
  void split_by(const AddedTokenFinder& finder, std::string_view text, std::vector<int32_t>& tokens, Rest&& rest) {
    size_t at = 0;
    while (const auto match = finder.find(text, at)) {
      if (match->begin > at) rest(text.substr(at, match->begin - at));
      tokens.push_back(match->id);
      at = match->end;
    }
    if (at < text.size()) rest(text.substr(at));
  }

  void encode_normalised(std::string_view text, std::vector<int32_t>& tokens) {
    if (spec_.compose && !is_surely_composed(text)) text = composed_ = compose_text(text);
    split_by(spec_.composed_added, text, tokens, [&](std::string_view piece) { encode_piece(piece, tokens); });
  }

  void encode_piece(std::string_view piece, std::vector<int32_t>& tokens) {
    if (spec_.add_prefix_space && piece.front() != ' ') piece = prefixed_ = " " + std::string(piece);
    const char *at = piece.data(), *const end = at + piece.size();
    while (at < end) {
      const char* const behind = next_word_(at, end);
      encode_word(at, behind, end, tokens);
      at = behind;
    }
  }

  void encode_word(const char* at, const char* behind, const char* readable, std::vector<int32_t>& tokens) {
    const auto length = static_cast<size_t>(behind - at);
    if (length > WordCache::k_longest) return merge_word({at, length}, tokens);
    const WordCache::Key key = WordCache::make_key(at, behind, readable);
    if (cache_.append(key, tokens)) return;
    const size_t before = tokens.size();
    merge_word({at, length}, tokens);
    cache_.insert(key, std::span(tokens).subspan(before));
  }

  void merge_word(std::string_view word, std::vector<int32_t>& tokens) {
    if (spec_.ignore_merges) {
      const auto whole = spec_.vocabulary.find(word);
      if (whole != spec_.vocabulary.end()) return tokens.push_back(whole->second);
    }
    word_.clear();
    for (const char byte : word) {
      const int32_t token = spec_.byte_tokens[static_cast<unsigned char>(byte)];
      if (token >= 0) word_.push_back(token);
    }
    merger_.merge(word_);
    tokens.insert(tokens.end(), word_.begin(), word_.end());
  }

  const ByteLevelSpec& spec_;
  const NextWord next_word_;
  WordMerger merger_;
  WordCache cache_;
  std::vector<int32_t> word_;
  std::string composed_, prefixed_;
};

}  // namespace

std::optional<int32_t> ByteLevelBpe::find_token(std::string_view text) const {
  for (const Vocabulary* vocabulary : {&spec_.added, &spec_.vocabulary})
    if (const auto found = vocabulary->find(text); found != vocabulary->end()) return found->second;
  return std::nullopt;
}

std::string ByteLevelBpe::describe() const {
  return fmt::format("byte-level BPE, {} tokens, words as in {}", spec_.vocab_size, enum_name(spec_.pattern));
}

std::unique_ptr<TextEncoder> ByteLevelBpe::make_encoder() const { return std::make_unique<ByteLevelEncoder>(spec_); }

}  // namespace tprimat::engine

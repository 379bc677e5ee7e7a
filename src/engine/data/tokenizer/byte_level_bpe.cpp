#include "data/tokenizer/byte_level_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/word_tokens.h"

namespace tprimat::engine {
namespace {

bool is_space_at(const char* at) { return is_space(UnicodeClasses::get().of(decode_utf8(at).code)); }

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

void AddedTokenFinder::add(AddedToken token) {
  CHECK(!token.content.empty());
  size_t node = 0;
  for (const char byte : token.content) {
    const auto [found, fresh] = edges_.try_emplace(edge(node, byte), ends_.size());
    if (fresh) ends_.emplace_back();
    node = found->second;
  }
  ends_[node] = tokens_.size();
  const char first = token.content.front();
  if (!begins_[static_cast<unsigned char>(first)]) first_bytes_ += first;
  begins_[static_cast<unsigned char>(first)] = true;
  tokens_.push_back(std::move(token));
}

size_t AddedTokenFinder::next_candidate(std::string_view text, size_t from) const {
  if (first_bytes_.size() == 1) return std::min(text.find(first_bytes_[0], from), text.size());
  while (from < text.size() && !begins_[static_cast<unsigned char>(text[from])]) ++from;
  return from;
}

std::optional<size_t> AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  std::optional<size_t> longest;
  size_t node = 0;
  for (; at < text.size(); ++at) {
    const auto next = edges_.find(edge(node, text[at]));
    if (next == edges_.end()) break;
    node = next->second;
    if (ends_[node]) longest = ends_[node];
  }
  return longest;
}

AddedTokenFinder::Match AddedTokenFinder::stripped(std::string_view text, size_t from, size_t at,
                                                   const AddedToken& token) const {
  Match match{at, at + token.content.size(), token.id};
  while (token.strip_left && match.begin > from) {
    size_t before = match.begin - 1;
    while (before > from && is_continuation(text[before])) --before;
    if (!is_space_at(text.data() + before)) break;
    match.begin = before;
  }
  while (token.strip_right && match.end < text.size() && is_space_at(text.data() + match.end))
    match.end += decode_utf8(text.data() + match.end).bytes;
  return match;
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::find(std::string_view text, size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (size_t at = next_candidate(text, from); at < text.size(); at = next_candidate(text, at + 1))
    if (const auto token = longest_at(text, at)) return stripped(text, from, at, tokens_[*token]);
  return std::nullopt;
}

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

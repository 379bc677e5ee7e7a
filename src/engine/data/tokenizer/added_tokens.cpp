#include "data/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "data/tokenizer/unicode_class.h"

namespace tprimat::engine {
namespace {

bool is_space_at(const char* at) { return is_space(UnicodeClasses::get().of(decode_utf8(at).code)); }

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

}  // namespace tprimat::engine

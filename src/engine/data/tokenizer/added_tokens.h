#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

}  // namespace tprimat::engine

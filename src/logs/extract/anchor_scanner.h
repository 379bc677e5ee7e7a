#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::logs {

struct AnchorHit {
  size_t position = 0;  // of the anchor's first byte
  uint32_t anchor = 0;  // index in the list given to the scanner
};

// Finds every occurrence of a set of literals in one pass, at several bytes per cycle whatever their number: the
// "Teddy" algorithm of Hyperscan (Wang et al., NSDI 2019, section 4.2). Each literal goes into one of eight buckets;
// two table look-ups per byte give the buckets whose literals may have four certain bytes there. Where all four agree,
// a hash of the four bytes leads to the literals that are compared.
class AnchorScanner {
 public:
  explicit AnchorScanner(const std::vector<std::string_view>& anchors);  // four bytes or more each

  // Replaces `hits`, in ascending order of position. An anchor that lies across the end of `text` is not found.
  void scan(std::string_view text, std::vector<AnchorHit>& hits) const;

  static constexpr size_t k_window = 4;
  static constexpr size_t k_sets = 2;  // of eight buckets, a bit each
  struct Tables {                      // by set, byte of the window and nibble: the buckets that allow it
    alignas(16) std::array<std::array<std::array<uint8_t, 16>, k_window>, k_sets> low{}, high{};
  };

 private:
  struct Literal {
    std::string text;
    size_t window = 0;            // where in the text its rarest four bytes begin
    uint32_t bytes = 0;           // these
    uint32_t head = 0, tail = 0;  // its first and its last four bytes
    uint32_t anchor = 0;
  };
  static constexpr size_t k_slots = 4096;
  bool may_be_literal(const uint8_t* window) const;
  void verify(std::string_view text, size_t position, std::vector<AnchorHit>& hits) const;

  Tables tables_;
  std::vector<Literal> literals_;              // those of one slot stand together
  std::array<uint16_t, k_slots + 1> first_{};  // of each slot, by a hash of the window
};

// Number of "\n" bytes.
int64_t count_newlines(std::string_view text);

}  // namespace tprimat::logs

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::engine {

// What the pre-tokenizers' patterns ask about a code point. `letter` is \p{L}, `number` is \p{N}; spaces are \s, of
// which CR and LF are asked about apart.
enum class CharClass : uint8_t { other, letter, number, space, line_end };
inline bool is_space(CharClass kind) { return kind >= CharClass::space; }

struct DecodedChar {
  uint32_t code = 0;
  uint32_t bytes = 1;
};
// The code point at `at`, which must begin a well-formed one.
DecodedChar decode_utf8(const char* at);

// Whether it is a second, third or fourth byte of a code point.
inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Offset of the first byte that begins no well-formed code point (RFC 3629); absent when all is well.
size_t valid_utf8_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

// The class of every code point, after Unicode 16.0, which the Rust library `tokenizers` 0.2x uses.
class UnicodeClasses {
 public:
  static const UnicodeClasses& get();  // made once, in some milliseconds
  CharClass of(uint32_t code) const { return table_[code]; }

 private:
  UnicodeClasses();
  std::vector<CharClass> table_;  // 1.1 MB
};

// False only when the text may differ from its normal form C; quick.
bool is_surely_composed(std::string_view text);

// Unicode's normal form C (Standard Annex 15) of valid UTF-8.
std::string compose_text(std::string_view text);

}  // namespace tprimat::engine

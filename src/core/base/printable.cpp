#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tprimat {
namespace {

struct Range {
  char32_t first, last;
};
// Unicode 15.1: Default_Ignorable_Code_Point but for the variation selectors of ordinary emoji, the controls, the
// separators of lines and paragraphs, the marks of interlinear annotation, and noncharacters.
constexpr std::array k_unprintable = {
    Range{0x0, 0x1f},        Range{0x7f, 0x9f},       Range{0xad, 0xad},      Range{0x34f, 0x34f},
    Range{0x61c, 0x61c},     Range{0x115f, 0x1160},   Range{0x17b4, 0x17b5},  Range{0x180b, 0x180f},
    Range{0x200b, 0x200f},   Range{0x2028, 0x202e},   Range{0x2060, 0x206f},  Range{0x3164, 0x3164},
    Range{0xfeff, 0xfeff},   Range{0xffa0, 0xffa0},   Range{0xfff0, 0xfffb},  Range{0xfffe, 0xffff},
    Range{0x1bca0, 0x1bca3}, Range{0x1d173, 0x1d17a}, Range{0xe0000, 0xe0fff}};

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

std::string escape(char32_t code) {
  const auto number = static_cast<unsigned>(code);
  return code < 0x80      ? fmt::format("\\x{:02x}", number)
         : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                          : fmt::format("\\U{:08x}", number);
}

}  // namespace

Utf8Character decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (size == 0 || first > 0xf4 || text.size() < size) return {};
  char32_t code = first & (0x7fU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> k_first_of_size = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < k_first_of_size[size] || code > 0x10ffff || is_surrogate ? Utf8Character{} : Utf8Character{code, size};
}

bool is_unprintable(char32_t code) {
  return std::any_of(k_unprintable.begin(), k_unprintable.end(),
                     [code](const Range& range) { return code >= range.first && code <= range.last; });
}

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const char c = text.front();
    const Utf8Character character = is_plain(c) ? Utf8Character{static_cast<char32_t>(c), 1} : decode_utf8(text);
    const size_t size = std::max<size_t>(1, character.bytes);
    if (character.bytes == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else if (is_plain(c) || kept.find(c) != std::string_view::npos || !is_unprintable(character.code))
      out += text.substr(0, size);
    else if (c >= '\t' && c <= '\r')
      out += ' ';
    else
      out += escape(character.code);
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace tprimat

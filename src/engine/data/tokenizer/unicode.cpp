#include "data/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr uint32_t k_code_points = 0x110000;

struct CodeRange {
  uint32_t first, last;
};

// Letters and numbers that Unicode 15.1 and 16.0 added; Debian's utf8proc knows 15.0.
constexpr CodeRange k_newer_letters[] = {{0x1c89, 0x1c8a},   {0xa7cb, 0xa7cd},   {0xa7da, 0xa7dc},   {0x105c0, 0x105f3},
                                         {0x10d4a, 0x10d65}, {0x10d6f, 0x10d85}, {0x10ec2, 0x10ec4}, {0x11380, 0x11389},
                                         {0x1138b, 0x1138b}, {0x1138e, 0x1138e}, {0x11390, 0x113b5}, {0x113b7, 0x113b7},
                                         {0x113d1, 0x113d1}, {0x113d3, 0x113d3}, {0x11bc0, 0x11be0}, {0x13460, 0x143fa},
                                         {0x16100, 0x1611d}, {0x16d40, 0x16d6c}, {0x18cff, 0x18cff}, {0x1e5d0, 0x1e5ed},
                                         {0x1e5f0, 0x1e5f0}, {0x2ebf0, 0x2ee5d}};
constexpr CodeRange k_newer_numbers[] = {{0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9}, {0x16130, 0x16139},
                                         {0x16d70, 0x16d79}, {0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa}};
// White_Space of Unicode's PropList, without CR and LF.
constexpr CodeRange k_spaces[] = {{0x09, 0x09},     {0x0b, 0x0c},     {0x20, 0x20},     {0x85, 0x85},
                                  {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029},
                                  {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

CharClass class_by_category(uint32_t code) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return CharClass::letter;
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return CharClass::number;
  return CharClass::other;
}

// Bytes of the well-formed code point at `at`, of which `left` bytes are there; 0 when it is not one.
size_t well_formed_bytes(const char* at, size_t left) {
  const auto first = static_cast<unsigned char>(*at);
  if (first < 0x80) return 1;
  const size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (bytes == 0 || left < bytes || !std::all_of(at + 1, at + bytes, is_continuation)) return 0;
  const auto second = static_cast<unsigned char>(at[1]);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool beyond = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || beyond ? 0 : bytes;
}

}  // namespace

DecodedChar decode_utf8(const char* at) {
  const auto byte = [&](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  if (byte(0) < 0xe0) return {(byte(0) & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (byte(0) < 0xf0) return {(byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const size_t bytes = well_formed_bytes(text.data() + at, text.size() - at);
    if (bytes == 0) return at;
    at += bytes;
  }
  return at;
}

UnicodeClasses::UnicodeClasses() : table_(k_code_points) {
  const auto assign = [&](std::span<const CodeRange> ranges, CharClass kind) {
    for (const auto& [first, last] : ranges) std::fill(table_.begin() + first, table_.begin() + last + 1, kind);
  };
  for (uint32_t code = 0; code < k_code_points; ++code) table_[code] = class_by_category(code);
  assign(k_newer_letters, CharClass::letter);
  assign(k_newer_numbers, CharClass::number);
  assign(k_spaces, CharClass::space);
  table_['\r'] = table_['\n'] = CharClass::line_end;
}

const UnicodeClasses& UnicodeClasses::get() {
  static const UnicodeClasses classes;
  return classes;
}

// Below U+0300, whose first byte is 0xcc, every code point is its own normal form, and none composes with the one
// before it.
bool is_surely_composed(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) >= 0xcc; });
}

std::string compose_text(std::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &composed, options);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  CHECK(size >= 0);  // only for text that is not UTF-8, or without memory
  return {reinterpret_cast<const char*>(composed), static_cast<size_t>(size)};
}

}  // namespace tprimat::engine

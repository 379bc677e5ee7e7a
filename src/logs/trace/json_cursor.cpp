#include "trace/json_cursor.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr std::ptrdiff_t k_longest_word = 16;

static_assert(std::endian::native == std::endian::little);

// Eight characters at once: the high bit of the first byte that is a quote, a backslash, a control character or beyond
// ASCII is set, and no bit below it.
uint64_t special_bytes(const char* text) {
  constexpr uint64_t k_ones = 0x0101010101010101U;
  constexpr uint64_t k_high = 0x8080808080808080U;
  uint64_t x = 0;
  std::memcpy(&x, text, sizeof x);
  const auto zeros = [](uint64_t y) { return (y - k_ones) & ~y; };
  return (zeros(x ^ k_ones * '"') | zeros(x ^ k_ones * '\\') | ((x - k_ones * 0x20) & ~x) | x) & k_high;
}

// "\u0041": one character, those beyond ASCII as a question mark.
char code_unit(std::string_view digits) {
  uint32_t code = '?';
  std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  return code < 0x20 ? ' ' : code < 0x80 ? static_cast<char>(code) : '?';
}

char unescaped(char c) {
  constexpr std::string_view k_blanks = "bfnrt";
  return k_blanks.find(c) != std::string_view::npos ? ' ' : c;
}

}  // namespace

std::string JsonValue::text() const {
  if (is_plain) return std::string(raw);
  std::string text;
  for (size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (c != '\\' || i + 1 == raw.size()) {
      text += static_cast<unsigned char>(c) < 0x20 ? ' ' : static_cast<unsigned char>(c) < 0x80 ? c : '?';
    } else if (raw[++i] == 'u') {
      text += code_unit(raw.substr(i + 1, 4));
      i += 4;
    } else {
      text += unescaped(raw[i]);
    }
  }
  return text;
}

JsonValue JsonCursor::string() {
  expect('"', "a string should begin here");
  JsonValue value{{}, JsonKind::string, true};
  const char* const begin = at_;
  for (;;) {
    while (end_ - at_ >= 8) {
      const uint64_t special = special_bytes(at_);
      if (special != 0) {
        at_ += std::countr_zero(special) / 8;
        break;
      }
      at_ += 8;
    }
    if (at_ == end_) throw JsonEnds{};
    if (*at_ == '"') break;
    const unsigned char c = static_cast<unsigned char>(*at_);
    if (c == '\\' || c < 0x20 || c >= 0x80) value.is_plain = false;
    if (c == '\\' && end_ - at_ < 2) throw JsonEnds{};
    at_ += c == '\\' ? 2 : 1;
  }
  value.raw = {begin, static_cast<size_t>(at_ - begin)};
  ++at_;
  return value;
}

void JsonCursor::digits() {
  if (at_ == end_) throw JsonEnds{};
  if (!is_digit(*at_)) fail("a digit should stand here");
  while (at_ != end_ && is_digit(*at_)) ++at_;
  if (at_ == end_ && !whole_) throw JsonEnds{};
}

JsonValue JsonCursor::number() {
  const char* const begin = at_;
  if (*at_ == '-') ++at_;
  if (at_ != end_ && is_letter(*at_)) return word();  // -nan
  digits();
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    digits();
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '-' || *at_ == '+')) ++at_;
    digits();
  }
  return {{begin, static_cast<size_t>(at_ - begin)}, JsonKind::number, true};
}

JsonValue JsonCursor::word() {
  const char* const begin = at_;
  while (at_ != end_ && (is_letter(*at_) || *at_ == '/')) ++at_;
  if (at_ == end_ && !whole_) throw JsonEnds{};
  if (at_ == begin || at_ - begin > k_longest_word) {
    at_ = begin;
    fail("a value should stand here");
  }
  return {{begin, static_cast<size_t>(at_ - begin)}, JsonKind::word, true};
}

JsonValue JsonCursor::nested(int depth) {
  if (depth == k_max_json_depth) fail("lists and objects are nested too deep");
  const char* const begin = at_;
  const bool is_list = *at_ == '[';
  const auto visit = [&] { value(depth + 1); };
  if (is_list)
    elements(visit);
  else
    members([&](std::string_view) { visit(); });
  return {{begin, static_cast<size_t>(at_ - begin)}, is_list ? JsonKind::list : JsonKind::object, true};
}

JsonValue JsonCursor::value(int depth) {
  const char c = peek();
  if (c == '"') return string();
  if (c == '-' || is_digit(c)) return number();
  if (c == '[' || c == '{') return nested(depth);
  return word();
}

}  // namespace tprimat::logs

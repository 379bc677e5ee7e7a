#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "extract/figure.h"
#include "text/words.h"

// Small scanners for foreign text: they do not throw; text that does not fit gives nothing.
namespace tprimat::logs {

std::string_view trim(std::string_view text);  // blanks and tabs at both ends
bool contains(std::string_view text, std::string_view part);
size_t find_text(std::string_view text, std::string_view part);  // as text.find(part), faster

// The text behind the first `mark`; nothing if there is none.
std::optional<std::string_view> text_after(std::string_view text, std::string_view mark);

// The text between `open` and the next `close`, or to the end without `close`.
std::optional<std::string_view> text_between(std::string_view text, std::string_view open, std::string_view close);

// Removes `text` up to and including `mark`; false, without a change, if there is none.
bool skip_past(std::string_view& text, std::string_view mark);

// Removes `literal` or `wanted` from the start; false, without a change, if it is not there.
inline bool take_literal(std::string_view& text, std::string_view literal) {
  if (!text.starts_with(literal)) return false;
  text.remove_prefix(literal.size());
  return true;
}
inline bool take_char(std::string_view& text, char wanted) { return take_literal(text, {&wanted, 1}); }

// The number at the start, after blanks: "12.3 ms", "1.2E+01", "nan", "-inf". It is removed from the text. A comma
// before a digit groups thousands if nothing else fits ("12,345.6", "1,234,567"). Otherwise it may be a decimal comma
// or separate a list ("1,234", "0,523", "1,2", "1.234,5"): the result is absent.
Figure take_number(std::string_view& text);
Figure parse_number(std::string_view text);

// The same for a quantity that is always whole: "1,234" is 1234.
Figure take_count(std::string_view& text);
std::optional<int64_t> parse_whole(std::string_view text);  // a whole number below 2^53, "1e3" and "39.00" included

// The number right after the first `key`: number_after("loss: 2.5 | ...", "loss:").
Figure number_after(std::string_view text, std::string_view key);
Figure grouped_after(std::string_view text, std::string_view key);  // see take_count
std::optional<int64_t> whole_after(std::string_view text, std::string_view key);
Figure gb_after(std::string_view text, std::string_view key);  // see parse_bytes_gb

// Removes one to `most` digits from the start; nothing if there are more.
inline std::optional<int64_t> take_whole(std::string_view& text, size_t most = 15) {
  size_t length = 0;
  int64_t value = 0;
  for (; length < text.size() && is_digit(text[length]); ++length) {
    if (length == most) return std::nullopt;
    value = value * 10 + (text[length] - '0');
  }
  if (length == 0) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

// "28.2K": rounded to the digits shown, so the true value lies between low and high. Suffixes K M B G T P; 1000 each.
struct RoundedNumber {
  double value = 0.0, low = 0.0, high = 0.0;
};
std::optional<RoundedNumber> parse_human_number(std::string_view text);

// Removes the time stamp at the start (after "[" or blanks) with its closing "]"; s since 1970, read as UTC:
// "2024-09-03 15:54:54[.123|,123]", "2024-09-03T15:54:54[Z|+09:00]", "20251030 07:25:36", "01/17/2024 14:02:16".
Figure take_timestamp(std::string_view& text);

inline constexpr double k_gib = 1073741824.0;
inline constexpr double k_mib = 1048576.0;

// "169.10GiB", "548 MiB", "4 GB", "96 MB", "29225381888 B" in GB = 1e9 bytes; K/M/G/T with "iB" are powers of 1024,
// with "B" powers of 1000 -- where a framework means 1024 by "GB", its dialect converts itself.
Figure parse_bytes_gb(std::string_view text);

// JSON as Python prints it: with the bare words NaN, Infinity and -Infinity, which JSON does not have, replaced.
std::string replace_bare_words(std::string_view text, std::string (*replace)(std::string_view word));

}  // namespace tprimat::logs

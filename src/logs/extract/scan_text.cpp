#include "extract/scan_text.h"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "extract/plain_number.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

void skip_blanks(std::string_view& text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
}

bool is_thousands_group(std::string_view text) {
  return text.size() >= 4 && text[0] == ',' && is_digit(text[1]) && is_digit(text[2]) && is_digit(text[3]) &&
         (text.size() == 4 || !is_digit(text[4]));
}

enum class Comma { none, thousands, thousands_or_decimal, unclear };

// The meaning of the comma behind the number at the start of `text`. After a decimal point or an exponent it separates
// two numbers, except in "1.234,5".
Comma kind_of_comma(std::string_view text, size_t length) {
  if (length + 1 >= text.size() || text[length] != ',' || !is_digit(text[length + 1])) return Comma::none;
  const std::string_view plain = text.substr(0, length);
  if (const size_t point = plain.find_first_not_of("0123456789"); point != std::string_view::npos) {
    const bool may_group = plain[point] == '.' && point >= 1 && point <= 3 && plain[0] != '0' && length - point == 4 &&
                           plain.find_first_not_of("0123456789", point + 1) == std::string_view::npos;
    return may_group ? Comma::unclear : Comma::none;
  }
  std::string_view rest = text.substr(length);
  int groups = 0;
  for (; is_thousands_group(rest); rest.remove_prefix(4)) ++groups;
  const bool ends = rest.size() < 2 || rest[0] != ',' || !is_digit(rest[1]);
  if (length > 3 || plain[0] == '0' || groups == 0 || !ends) return Comma::unclear;
  const bool has_fraction = rest.size() > 1 && rest[0] == '.' && is_digit(rest[1]);
  return groups > 1 || has_fraction ? Comma::thousands : Comma::thousands_or_decimal;
}

// Digits with commas, and an optional fraction: "2,012,345.6". `text` starts with a digit.
Figure take_grouped_number(std::string_view& text) {
  std::string digits;
  while (!text.empty() && (is_digit(text.front()) || is_thousands_group(text))) {
    if (text.front() != ',') digits += text.front();
    text.remove_prefix(1);
  }
  if (text.size() > 1 && text[0] == '.' && is_digit(text[1])) {
    digits += '.';
    for (text.remove_prefix(1); !text.empty() && is_digit(text.front()); text.remove_prefix(1)) digits += text.front();
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() ? Figure(value) : Figure();
}

// Removes exactly `count` digits from the start of the text.
std::optional<int> take_digits(std::string_view& text, size_t count) {
  if (text.size() < count) return std::nullopt;
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!is_digit(text[i])) return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

struct Date {
  int year = 0, month = 0, day = 0;
};

std::optional<Date> take_date(std::string_view& text) {
  std::string_view rest = text;
  const auto accept = [&](std::optional<int> y, std::optional<int> m, std::optional<int> d) -> std::optional<Date> {
    if (!y || !m || !d || *m < 1 || *m > 12 || *d < 1 || *d > 31 || *y < 1990 || *y > 2100) return std::nullopt;
    text = rest;
    return Date{*y, *m, *d};
  };
  if (const auto first = take_digits(rest, 4)) {
    if (!rest.empty() && (rest.front() == '-' || rest.front() == '/')) {
      const char separator = rest.front();
      rest.remove_prefix(1);
      const auto month = take_digits(rest, 2);
      if (!take_char(rest, separator)) return std::nullopt;
      return accept(first, month, take_digits(rest, 2));
    }
    const auto month = take_digits(rest, 2);
    return accept(first, month, take_digits(rest, 2));
  }
  rest = text;
  const auto month = take_digits(rest, 2);
  if (!month || !take_char(rest, '/')) return std::nullopt;
  const auto day = take_digits(rest, 2);
  if (!day || !take_char(rest, '/')) return std::nullopt;
  return accept(take_digits(rest, 4), month, day);
}

// Of a second: "123456" after the point.
double take_fraction(std::string_view& rest) {
  constexpr auto k_units = [] {
    std::array<double, 9> units{0.1};
    for (size_t i = 1; i < units.size(); ++i) units[i] = units[i - 1] / 10;
    return units;
  }();
  double fraction = 0, unit = 0;
  for (size_t i = 0; !rest.empty() && is_digit(rest.front()); rest.remove_prefix(1), ++i) {
    unit = i < k_units.size() ? k_units[i] : unit / 10;
    fraction += (rest.front() - '0') * unit;
  }
  return fraction;
}

// "15:54:54", then ".123" or ",123" when a fraction follows; seconds of the day.
Figure take_clock(std::string_view& text) {
  std::string_view rest = text;
  const auto hour = take_digits(rest, 2);
  if (!hour || !take_char(rest, ':')) return {};
  const auto minute = take_digits(rest, 2);
  if (!minute || !take_char(rest, ':')) return {};
  const auto second = take_digits(rest, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return {};
  double fraction = 0;
  if (rest.size() > 1 && (rest[0] == '.' || rest[0] == ',') && is_digit(rest[1])) {
    rest.remove_prefix(1);
    fraction = take_fraction(rest);
  }
  text = rest;
  return *hour * 3600.0 + *minute * 60.0 + *second + fraction;
}

// Seconds that the clock is ahead of UTC, from "Z", "+09:00" or "-0700" removed from the start; 0 without one.
double take_zone(std::string_view& text) {
  if (take_char(text, 'Z')) return 0;
  std::string_view rest = text;
  const bool behind = !rest.empty() && rest.front() == '-';
  if (!behind && (rest.empty() || rest.front() != '+')) return 0;
  rest.remove_prefix(1);
  const auto hours = take_digits(rest, 2);
  take_char(rest, ':');
  const auto minutes = take_digits(rest, 2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return 0;
  text = rest;
  return (behind ? -60.0 : 60.0) * (*hours * 60 + *minutes);
}

double unit_factor(char suffix) {
  switch (suffix) {
    case 'k':
    case 'K': return 1e3;
    case 'M': return 1e6;
    case 'G':
    case 'B': return 1e9;
    case 'T': return 1e12;
    case 'P': return 1e15;
    default: return 0;
  }
}

// Half a unit of the last digit shown: 0.05 for "28.2", 5 for "1.2e+2", 0.5 for "272".
double half_of_last_digit(std::string_view digits) {
  double unit = 0.5;
  const size_t exponent = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, exponent);
  if (const size_t dot = mantissa.find('.'); dot != std::string_view::npos)
    unit *= std::pow(10.0, -static_cast<double>(mantissa.size() - dot - 1));
  if (exponent != std::string_view::npos) unit *= std::pow(10.0, parse_number(digits.substr(exponent + 1)).value_or(0));
  return unit;
}

}  // namespace

std::string_view trim(std::string_view text) {
  skip_blanks(text);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

HWY_BEFORE_NAMESPACE();  // on Arm, vector functions are inlined only into code for the same instructions
namespace {
namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::CappedTag<uint8_t, 16> k_bytes;

// A bit for each of the places from `bytes` on where the first and the last byte of a text fit.
uint64_t fitting_places(const uint8_t* bytes, std::string_view part) {
  const auto first = hn::Set(k_bytes, static_cast<uint8_t>(part.front()));
  const auto last = hn::Set(k_bytes, static_cast<uint8_t>(part.back()));
  const auto fits =
      hn::And(hn::Eq(hn::LoadU(k_bytes, bytes), first), hn::Eq(hn::LoadU(k_bytes, bytes + part.size() - 1), last));
  uint64_t places = 0;
  hn::StoreMaskBits(k_bytes, fits, reinterpret_cast<uint8_t*>(&places));
  return places;
}

}  // namespace

// Many places at once: where the first and the last byte fit, the others are compared. A search for the first byte
// alone stops at every blank and every "e".
size_t find_text(std::string_view text, std::string_view part) {
  const size_t places = hn::Lanes(k_bytes);
  if (part.size() < 2 || text.size() < part.size() + places) return text.find(part);
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const size_t end = text.size() - (part.size() - 1) - places;  // of the last block, which overlaps the one before
  for (size_t at = 0;; at = std::min(at + places, end)) {
    for (uint64_t fits = fitting_places(bytes + at, part); fits != 0; fits &= fits - 1) {
      const size_t place = at + static_cast<size_t>(std::countr_zero(fits));
      if (std::memcmp(text.data() + place, part.data(), part.size()) == 0) return place;
    }
    if (at == end) return std::string_view::npos;
  }
}
HWY_AFTER_NAMESPACE();

bool contains(std::string_view text, std::string_view part) { return find_text(text, part) != std::string_view::npos; }

std::optional<std::string_view> text_after(std::string_view text, std::string_view mark) {
  if (!skip_past(text, mark)) return std::nullopt;
  return text;
}

std::optional<std::string_view> text_between(std::string_view text, std::string_view open, std::string_view close) {
  if (!skip_past(text, open)) return std::nullopt;
  return text.substr(0, find_text(text, close));
}

bool skip_past(std::string_view& text, std::string_view mark) {
  const size_t at = find_text(text, mark);
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at + mark.size());
  return true;
}

namespace {

PlainNumber read_any_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() && error != std::errc::result_out_of_range) return {};
  if (error == std::errc::result_out_of_range) value = std::numeric_limits<double>::quiet_NaN();
  return {value, static_cast<size_t>(end - text.data())};
}

// Digits, or "nan", "inf" and "infinity" in any case, without their sign.
Figure take_unsigned(std::string_view& rest, bool is_whole) {
  PlainNumber number = read_plain_number(rest);
  if (number.length == 0) number = read_any_number(rest);
  const auto [plain, length] = number;
  if (length == 0) return {};
  const Comma comma = kind_of_comma(rest, length);
  if (comma == Comma::unclear || (comma == Comma::thousands_or_decimal && !is_whole)) return {};
  if (comma != Comma::none) return take_grouped_number(rest);
  rest.remove_prefix(length);
  return plain;
}

Figure scan_number(std::string_view& text, bool is_whole) {
  std::string_view rest = text;
  skip_blanks(rest);
  const bool negative = !rest.empty() && rest.front() == '-';
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
  if (rest.empty()) return {};
  const bool may_be_number = is_digit(rest.front()) || is_letter(rest.front()) ||
                             (rest.size() > 1 && rest.front() == '.' && is_digit(rest[1]));
  Figure value = may_be_number ? take_unsigned(rest, is_whole) : Figure();
  if (value && negative) value = -*value;
  if (value) text = rest;
  return value;
}

}  // namespace

Figure take_number(std::string_view& text) { return scan_number(text, false); }

Figure take_count(std::string_view& text) { return scan_number(text, true); }

Figure parse_number(std::string_view text) { return take_number(text); }

std::optional<int64_t> parse_whole(std::string_view text) {
  const Figure value = take_count(text);
  if (!value || !(std::abs(*value) < 9007199254740992.0) || std::floor(*value) != *value) return std::nullopt;
  return static_cast<int64_t>(*value);
}

Figure number_after(std::string_view text, std::string_view key) {
  return skip_past(text, key) ? take_number(text) : Figure();
}

Figure grouped_after(std::string_view text, std::string_view key) {
  return skip_past(text, key) ? take_count(text) : Figure();
}

std::optional<int64_t> whole_after(std::string_view text, std::string_view key) {
  return skip_past(text, key) ? parse_whole(text) : std::nullopt;
}

Figure gb_after(std::string_view text, std::string_view key) {
  return skip_past(text, key) ? parse_bytes_gb(text) : Figure();
}

std::optional<RoundedNumber> parse_human_number(std::string_view text) {
  text = trim(text);
  std::string_view rest = text;
  const Figure value = take_number(rest);
  if (!value.finite()) return std::nullopt;
  const std::string_view digits = text.substr(0, text.size() - rest.size());
  const double factor = rest.empty() ? 0 : unit_factor(rest.front());
  const double scale = factor == 0 ? 1 : factor;
  const double half = half_of_last_digit(digits) * scale;
  return RoundedNumber{*value * scale, *value * scale - half, *value * scale + half};
}

Figure take_timestamp(std::string_view& text) {
  std::string_view rest = text;
  skip_blanks(rest);
  const bool bracket = take_char(rest, '[');
  const auto date = take_date(rest);
  if (!date || rest.empty() || (rest.front() != ' ' && rest.front() != 'T' && rest.front() != '_')) return {};
  rest.remove_prefix(1);
  const Figure clock = take_clock(rest);
  if (!clock) return {};
  const double zone = take_zone(rest);
  if (bracket && !take_char(rest, ']')) return {};
  using namespace std::chrono;
  const sys_days days =
      year(date->year) / month(static_cast<unsigned>(date->month)) / day(static_cast<unsigned>(date->day));
  text = rest;
  return static_cast<double>(days.time_since_epoch().count()) * 86400.0 + *clock - zone;
}

Figure parse_bytes_gb(std::string_view text) {
  const Figure value = take_number(text);
  if (!value) return {};
  text = trim(text);
  if (text.empty()) return {};
  constexpr std::string_view k_letters = "KMGTP";
  if (text.front() == 'B') return *value / 1e9;
  const size_t power = k_letters.find(text.front() == 'k' ? 'K' : text.front());
  if (power == std::string_view::npos || text.size() < 2) return {};
  const bool binary = text[1] == 'i';
  if (!binary && text[1] != 'B') return {};
  return *value * std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1)) / 1e9;
}

std::string replace_bare_words(std::string_view text, std::string (*replace)(std::string_view word)) {
  std::string out;
  out.reserve(text.size());
  bool quoted = false;
  for (size_t at = 0; at < text.size();) {
    std::string_view word;
    for (const std::string_view each : {"NaN", "-Infinity", "Infinity"})
      if (!quoted && text.substr(at).starts_with(each)) word = each;
    if (!word.empty()) {
      out += replace(word);
      at += word.size();
      continue;
    }
    if (text[at] == '"') quoted = !quoted;
    if (quoted && text[at] == '\\' && at + 1 < text.size()) out += text[at++];
    out += text[at++];
  }
  return out;
}

}  // namespace tprimat::logs

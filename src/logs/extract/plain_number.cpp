#include "extract/plain_number.h"

#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "text/words.h"

namespace tprimat::logs {

// At most 15 digits and a power of ten up to 10^22 are exact, so that a single rounding gives the nearest value
// (Clinger, How to read floating point numbers accurately, PLDI 1990).
PlainNumber read_plain_number(std::string_view text) {
  constexpr double k_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr size_t k_max_length = 16;  // of the digits with their point
  size_t at = 0;
  uint64_t digits = 0;
  const auto digit_at = [&](size_t place) { return place < text.size() && is_digit(text[place]); };
  for (; digit_at(at); ++at) digits = digits * 10 + static_cast<uint64_t>(text[at] - '0');
  const size_t whole = at;
  if (digit_at(at + 1) && text[at] == '.')
    for (++at; digit_at(at); ++at) digits = digits * 10 + static_cast<uint64_t>(text[at] - '0');
  int exponent = at > whole ? -static_cast<int>(at - whole - 1) : 0;
  const char next = at < text.size() ? text[at] : ' ';
  if (whole == 0 || at > k_max_length || (next == '.' && at == whole)) return {};
  if (next == 'e' || next == 'E') {
    if (at + 4 > text.size() || (text[at + 1] != '+' && text[at + 1] != '-') || digit_at(at + 4)) return {};
    if (!digit_at(at + 2) || !digit_at(at + 3)) return {};
    const int power = (text[at + 2] - '0') * 10 + (text[at + 3] - '0');
    exponent += text[at + 1] == '-' ? -power : power;
    at += 4;
  }
  if (std::abs(exponent) >= std::ssize(k_powers) || digits >= 1'000'000'000'000'000) return {};
  const auto exact = static_cast<double>(digits);
  return {exponent < 0 ? exact / k_powers[-exponent] : exact * k_powers[exponent], at};
}

}  // namespace tprimat::logs

#include "text/few_digits.h"

#include <bit>
#include <cmath>
#include <iterator>

namespace tprimat {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t k_powers_of_ten[] = {1,
                                        10,
                                        100,
                                        1'000,
                                        10'000,
                                        100'000,
                                        1'000'000,
                                        10'000'000,
                                        100'000'000,
                                        1'000'000'000,
                                        10'000'000'000,
                                        100'000'000'000,
                                        1'000'000'000'000,
                                        10'000'000'000'000,
                                        100'000'000'000'000,
                                        1'000'000'000'000'000,
                                        10'000'000'000'000'000,
                                        100'000'000'000'000'000};
constexpr double k_smallest = 1e-12, k_largest = 1e15;

// The value as significand / 2^shift.
struct Binary {
  uint64_t significand = 0;
  int shift = 0;
};

Binary split(double value) {
  constexpr int k_fraction_bits = 52, k_bias = 1023;
  const auto bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>(bits >> k_fraction_bits) - k_bias;
  const uint64_t fraction = bits & ((uint64_t{1} << k_fraction_bits) - 1);
  return {fraction | uint64_t{1} << k_fraction_bits, k_fraction_bits - exponent};
}

// Whether digits / 10^places lies clearly within half a unit of the significand's last place, so that it reads back as
// the value. All products are exact: the significand has 53 bits, 10^17 has 57.
bool reads_back(const Binary& binary, uint64_t digits, int places) {
  const uint64_t power = k_powers_of_ten[places];
  const Wide exact = Wide{binary.significand} * power, near = Wide{digits} << binary.shift;
  const Wide apart = exact > near ? exact - near : near - exact;
  return apart * 100 < Wide{power} * 49;
}

uint64_t round_at(double value, int places) {
  const double scaled = value * static_cast<double>(k_powers_of_ten[places]);
  return scaled < k_largest ? static_cast<uint64_t>(scaled + 0.5) : 0;
}

FewDigits without_zeros(FewDigits number) {
  while (number.places > 0 && number.digits % 10 == 0) number.digits /= 10, --number.places;
  return number;
}

}  // namespace

// Two numbers of 15 digits never read back as the same value, so the first one found is the only one.
std::optional<FewDigits> find_few_digits(double value, int& places) {
  if (!(value >= k_smallest && value < k_largest)) return std::nullopt;
  const Binary binary = split(value);
  const bool is_power_of_two = (binary.significand & (binary.significand - 1)) == 0;  // its neighbours lie unevenly
  if (is_power_of_two && binary.shift > 52) return std::nullopt;
  const auto tried = [&](int at) -> std::optional<FewDigits> {
    const uint64_t digits = round_at(value, at);
    if (digits == 0 || !reads_back(binary, digits, at)) return std::nullopt;
    return without_zeros({digits, at});
  };
  if (const auto found = tried(places)) return found;
  for (int at = 0; at < std::ssize(k_powers_of_ten); ++at) {
    if (round_at(value, at) == 0 && value > 1) return std::nullopt;  // more places have too many digits
    const auto found = tried(at);
    if (!found) continue;
    places = at;
    return found;
  }
  return std::nullopt;
}

}  // namespace tprimat

#pragma once

#include <cstdint>
#include <optional>

namespace tprimat {

// A number of at most 15 digits, none of them a zero at the end: digits / 10^places.
struct FewDigits {
  uint64_t digits = 0;
  int places = 0;
};

// The shortest decimal number that reads back as the value, which is positive; nothing if it has more digits, or if
// the value is not between 1e-12 and 1e15. Figures that a log printed have few digits, and these are found faster than
// any digits. `places` is tried first, and becomes the number of places of the value.
std::optional<FewDigits> find_few_digits(double value, int& places);

}  // namespace tprimat

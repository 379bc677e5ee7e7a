#pragma once

#include <cstdint>
#include <string_view>

namespace tprimat {

// Why a GPU holds its clock down. The vendors name dozens of causes; these are the ones that a person can act on. A
// reading holds any number of them, one bit each.
enum ThrottleReason : uint32_t {
  k_throttle_power = 1U << 0,     // the power limit
  k_throttle_thermal = 1U << 1,   // heat of the chip, its memory or its regulators
  k_throttle_current = 1U << 2,   // limits of the supply current (AMD)
  k_throttle_hardware = 1U << 3,  // the board demanded it: power brake, PROCHOT
  k_throttle_set = 1U << 4,       // somebody set a lower clock
};

struct ThrottleName {
  ThrottleReason reason;
  std::string_view name;
};
inline constexpr ThrottleName k_throttle_names[] = {{k_throttle_power, "power"},
                                                    {k_throttle_thermal, "thermal"},
                                                    {k_throttle_current, "current"},
                                                    {k_throttle_hardware, "hardware"},
                                                    {k_throttle_set, "clock_set"}};

}  // namespace tprimat

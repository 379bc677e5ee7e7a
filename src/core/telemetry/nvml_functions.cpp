#include "telemetry/nvml_functions.h"

#include "telemetry/throttle.h"

namespace tprimat {
namespace nvml {

Functions find_functions(const SharedLibrary& library) {
  Functions found{};
  const auto bind = [&]<class Result, class... Arguments>(Result (*&function)(Arguments...), const char* symbol) {
    if (function == nullptr) function = library.find<Result(Arguments...)>(symbol);
  };
  for_each_function(found, bind);
  return found;
}

std::string_view describe_status(Status status) {
  switch (status) {
    case 2: return "the library refuses the question";
    case 3: return "not supported by this device";
    case 4: return "no permission";
    case 6: return "the device is not found";
    case 9: return "the driver is not loaded";
    case 10: return "the driver did not answer in time";
    case 12: return "the library is incomplete";
    case 15: return "the GPU is lost";
    case 16: return "the GPU needs a reset";
    case 17: return "the operating system blocks the GPU";
    case 18: return "the driver and its library are of different versions";
    case 20: return "not enough memory";
    default: return "the library reports an error";
  }
}

uint32_t to_throttle(unsigned long long reasons) {
  // Bit 0 is an idle GPU: nothing is held down.
  constexpr unsigned long long k_clock_set = 0x2 | 0x10 | 0x100;  // application clocks, sync boost, display clock
  constexpr unsigned long long k_power_cap = 0x4, k_thermal = 0x20 | 0x40;
  constexpr unsigned long long k_hardware = 0x8 | 0x80 | 0x200 | 0x400;  // the last two: the board, reliability
  uint32_t throttle = 0;
  if ((reasons & k_power_cap) != 0) throttle |= k_throttle_power;
  if ((reasons & k_thermal) != 0) throttle |= k_throttle_thermal;
  if ((reasons & k_hardware) != 0) throttle |= k_throttle_hardware;
  if ((reasons & k_clock_set) != 0) throttle |= k_throttle_set;
  return throttle;
}

}  // namespace nvml
}  // namespace tprimat

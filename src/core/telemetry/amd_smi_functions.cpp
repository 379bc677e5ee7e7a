#include "telemetry/amd_smi_functions.h"

#include <cstddef>
#include <cstring>

#include "telemetry/throttle.h"

namespace tprimat {
namespace amd_smi {

// Where amdsmi_gpu_metrics_t of versions 24 to 26 has indep_throttle_status and accumulation_counter.
static_assert(offsetof(Metrics, throttle) == 112 && offsetof(Metrics, residency) == 424);

Functions find_functions(const SharedLibrary& library) {
  Functions found{};
  const auto bind = [&]<class Result, class... Arguments>(Result (*&function)(Arguments...), const char* symbol) {
    function = library.find<Result(Arguments...)>(symbol);
  };
  for_each_function(found, bind);
  return found;
}

std::string_view describe_status(Status status) {
  switch (status) {
    case 1: return "the library refuses the question";
    case 2:
    case 3: return "not supported by this device";
    case 8: return "the driver did not answer in time";
    case 10: return "no permission";
    case 12: return "the device cannot be read";
    case 30: return "the device is busy";
    case 31: return "the device is not found";
    case 32: return "the library has not started";
    case 34: return "the driver is not loaded";
    case 40: return "no data";
    case 42:
    case 43: return "the driver's data are not what the library expects";
    default: return "the library reports an error";
  }
}

bool is_told(uint64_t value) { return value != UINT16_MAX && value != UINT32_MAX && value != UINT64_MAX; }

std::optional<double> power_watts(const Power& power, const Version& version) {
  // Until ROCm 6.3 the pair comes first; since 6.4, which is version 25.25, a 64-bit socket_power stands before it.
  const bool pair_first = version.first <= 24 || (version.first == 25 && version.second < 25);
  const size_t first = pair_first ? 0 : 2;
  for (const size_t word : {first, first + 1})
    if (is_told(power.words[word]) && power.words[word] != 0) return power.words[word];
  return std::nullopt;
}

uint32_t to_throttle(uint64_t status) {
  // Groups of amdgpu_smu.h: 0 to 15 power, 16 to 31 current, 32 to 45 temperature, 46 and 47 PROCHOT.
  constexpr uint64_t k_power = 0xffff, k_current = 0xffff0000, k_heat = 0x3fff00000000, k_prochot = 0xc00000000000;
  uint32_t throttle = 0;
  if ((status & k_power) != 0) throttle |= k_throttle_power;
  if ((status & k_current) != 0) throttle |= k_throttle_current;
  if ((status & k_heat) != 0) throttle |= k_throttle_thermal;
  if ((status & k_prochot) != 0) throttle |= k_throttle_hardware;
  return throttle;
}

uint32_t to_throttle(const Residency& before, const Residency& now) {
  const auto grew = [](uint64_t a, uint64_t b) { return is_told(a) && is_told(b) && b > a; };
  uint32_t throttle = 0;
  if (grew(before.power, now.power)) throttle |= k_throttle_power;
  if (grew(before.socket_heat, now.socket_heat) || grew(before.regulator_heat, now.regulator_heat) ||
      grew(before.memory_heat, now.memory_heat))
    throttle |= k_throttle_thermal;
  if (grew(before.prochot, now.prochot)) throttle |= k_throttle_hardware;
  return throttle;
}

}  // namespace amd_smi
}  // namespace tprimat

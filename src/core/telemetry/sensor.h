#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tprimat {

// What one sensor said at one moment. What it cannot say is absent.
struct Reading {
  double unix_time = 0.0;             // s since 1970
  std::optional<double> utilisation;  // 0..1 of the device's capacity, since the reading before
  std::optional<double> power_watts;
  std::optional<double>
      energy_joules;  // a counter from an arbitrary origin that only grows; wrap-around is already removed
  std::optional<double> memory_used_bytes;
  std::optional<double> temperature_celsius;
  std::optional<double> clock_hz, memory_clock_hz;
  std::optional<uint32_t> throttle;  // ThrottleReason bits (throttle.h); 0: nothing holds the clock down
};

// One thing that can be read again and again. Reading never throws: a sensor that fails leaves its figures absent.
class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual std::string name() const = 0;  // "proc", "rapl", "nvml:0"
  virtual Reading read() = 0;
  virtual std::vector<std::string> notes() const { return {}; }  // what the readings so far lack, and why
};

}  // namespace tprimat

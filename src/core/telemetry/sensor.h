#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tprimat {

// One reading of one sensor. Figures that it cannot measure are absent.
struct Reading {
  double unix_time = 0.0;             // s since 1970
  std::optional<double> utilisation;  // 0..1 of the device's capacity, since the reading before
  std::optional<double> power_watts;
  std::optional<double> energy_joules;  // a counter from any origin that only grows; wrap-around is already removed
  std::optional<double> memory_used_bytes;
  std::optional<double> temperature_celsius;
  std::optional<double> clock_hz, memory_clock_hz;
  std::optional<uint32_t> throttle;  // ThrottleReason bits; 0: not throttled
};
Reading reading_of_now();  // with its time alone

// A source of readings. Reading never throws: a sensor that fails leaves its figures absent.
class Sensor {
 public:
  virtual ~Sensor() = default;
  virtual std::string name() const = 0;  // "proc", "rapl", "nvml:0"
  virtual Reading read() = 0;
  virtual std::vector<std::string> notes() const { return {}; }  // figures that the readings so far lack, and why
};

// Why a GPU throttles its clock. The vendors name dozens of causes; these are the ones that a user can act on. A
// reading holds any number of them, one bit each.
enum ThrottleReason : uint32_t {
  k_throttle_power = 1U << 0,     // the power limit
  k_throttle_thermal = 1U << 1,   // heat of the chip, its memory or its regulators
  k_throttle_current = 1U << 2,   // limits of the supply current (AMD)
  k_throttle_hardware = 1U << 3,  // demanded by the board: power brake, PROCHOT
  k_throttle_set = 1U << 4,       // a user set a lower clock
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

// The bits of the reasons that hold.
constexpr uint32_t throttle_bits(std::initializer_list<std::pair<bool, ThrottleReason>> reasons) {
  uint32_t bits = 0;
  for (const auto& [holds, reason] : reasons) bits |= holds ? reason : 0U;
  return bits;
}

// The figures that a sensor could not measure, why and how often. For each figure that a summary lacks, a note explains
// why.
class FaultLog {
 public:
  void count_reading() { ++readings_; }
  // Repetitions of the same figure and reason are only counted; `example` is that of the first.
  void record(std::string_view figure, std::string_view reason, std::string_view example = "");

  // "power, clock: the GPU is lost (12 of 40 readings)"; without the count where no reading had the figure.
  std::vector<std::string> notes() const;

 private:
  struct Fault {
    std::string figure, reason, example;
    int64_t count = 0;
  };
  std::vector<Fault> faults_;
  int64_t readings_ = 0;
};

}  // namespace tprimat

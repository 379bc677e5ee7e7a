#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat {

// What a sensor could not say, why and how often. A figure that is absent from a summary is explained by one of its
// notes.
class FaultLog {
 public:
  void count_reading() { ++readings_; }
  // The same figure and reason are counted, not kept again; `example` is that of the first time.
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

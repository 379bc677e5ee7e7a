#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/sensor.h"

namespace tprimat {

// All readings of one sensor, in the order of time.
struct SensorTrace {
  std::string source;
  std::vector<Reading> readings;
};

// Seconds until the next reading: often at the start, so that short runs are seen, then once a second.
double sampling_interval(double elapsed_seconds);

// Reads sensors on a thread of its own from construction until stop().
class Sampler {
 public:
  explicit Sampler(std::vector<std::unique_ptr<Sensor>> sensors);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  std::vector<SensorTrace> latest() const;  // of each sensor the last reading alone
  std::vector<SensorTrace> stop();          // takes a last reading and hands over everything

 private:
  void run();
  void read_all();
  void end_thread();

  std::vector<std::unique_ptr<Sensor>> sensors_;
  mutable std::mutex mutex_;  // guards traces_ and stopping_
  std::condition_variable wake_;
  std::vector<SensorTrace> traces_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tprimat

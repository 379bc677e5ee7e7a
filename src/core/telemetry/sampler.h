#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/sensor.h"

namespace tprimat {

// All readings of one sensor, in the order of time.
struct SensorTrace {
  std::string source;
  std::vector<Reading> readings;
  std::vector<std::string> notes = {};  // missing figures, and why
};

// Processor time of one reading, in seconds.
struct ReadingCost {
  double own = 0.0, all = 0.0;  // of this sensor, of all sensors
  size_t sensors = 1;
};

// Seconds until the next reading: ten a second at the start, so that short runs are seen, then five. Where all sensors
// together would take more than 0.4 % of a core, those that cost more than their share of it are read less often, down
// to once a second.
double sampling_interval(double elapsed_seconds, const ReadingCost& cost = {});

// Several readings as one: means of figures and time, so that sums over time stay what they are; the largest memory;
// the throttle reasons of most of them.
Reading merge_readings(std::span<const Reading> readings);

// Of a long run the last ten minutes are kept as read, and older ones are merged into readings of about a second, so
// that a week fits into memory. Call it after each new reading; most calls do nothing.
class Thinner {
 public:
  void thin(std::vector<Reading>& readings);

 private:
  size_t thinned_ = 0;  // readings at the front that are merged ones
};

// Reads sensors on a thread of its own from construction until stop().
class Sampler {
 public:
  explicit Sampler(std::vector<std::unique_ptr<Sensor>> sensors);

  std::vector<SensorTrace> latest() const;  // of each sensor the last reading alone
  std::vector<SensorTrace> stop();          // takes a last reading and hands over everything

 private:
  struct Watch {
    std::unique_ptr<Sensor> sensor;
    double due = 0.0;          // seconds since the start
    double cpu_seconds = 0.0;  // of one reading, smoothed
    Thinner thinner = {};
  };

  void run(const std::stop_token& stop);
  void read_due(double elapsed);
  void read_sensor(size_t index);
  double next_due() const;
  double cost_of_all() const;

  std::vector<Watch> watches_;
  mutable std::mutex mutex_;  // guards traces_
  std::condition_variable_any wake_;
  std::vector<SensorTrace> traces_;
  std::jthread thread_;  // last, so that it ends before the members that it uses
};

}  // namespace tprimat

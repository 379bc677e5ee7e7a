#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "run/step_source.h"

namespace tprimat::suite {

// The steps of a trainer that writes no records: read from its log, anew whenever that grew, since a reader that sees
// the whole log is never wrong about a restart. No more than a tenth of the time is spent reading.
class LogSteps : public StepSource {
 public:
  explicit LogSteps(std::string path) : path_(std::move(path)) {}
  bool read_new(double now) override;
  void read_rest(double now) override;
  const std::vector<StepRecord>& steps() const override { return steps_; }

 private:
  bool read_all(double now);

  std::string path_;
  int64_t size_ = -1;  // of the log when it was read
  double pause_seconds_ = 0.5;
  SteadyClock::time_point last_read_ = SteadyClock::now();
  std::vector<StepRecord> steps_;
};

}  // namespace tprimat::suite

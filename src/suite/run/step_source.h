#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "result/step_record.h"

namespace tprimat::suite {

// Where the steps of a training come from while it runs.
class StepSource {
 public:
  virtual ~StepSource() = default;

  // Reads what has come since. True when there is a new step. `now`, seconds since 1970, stands in for the end time of
  // a step that has none.
  virtual bool read_new(double now) = 0;
  virtual void read_rest(double now) { read_new(now); }  // once the training is over
  virtual const std::vector<StepRecord>& steps() const = 0;
  virtual int64_t unreadable_lines() const { return 0; }
  virtual std::string damage() const { return {}; }  // what befell the file, in words; empty: nothing
};

}  // namespace tprimat::suite

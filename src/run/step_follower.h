#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "run/step_source.h"

namespace tprimat {

// Reads a file of step records while a trainer still writes it. An incomplete last line waits for its end. A file that
// shrank was started anew, and so are the records.
class StepFollower : public StepSource {
 public:
  explicit StepFollower(std::string path) : path_(std::move(path)) {}

  // Reads what has been appended. True when there is a new step. `now` stands in for the end time of a step that has
  // none.
  bool read_new(double now) override;

  const std::vector<StepRecord>& steps() const override { return steps_; }
  int64_t unreadable_lines() const override { return unreadable_lines_; }

 private:
  void take_text(std::string_view text, double now);
  void take_line(const std::string& line, double now);

  std::string path_, partial_;
  int64_t offset_ = 0;
  int64_t unreadable_lines_ = 0;
  std::vector<StepRecord> steps_;
};

}  // namespace tprimat

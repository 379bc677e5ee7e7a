#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "run/step_source.h"

namespace tprimat::suite {

// Reads a file of step records while a trainer still writes it. An incomplete last line waits for its end. What was
// read is kept, whatever becomes of the file: it is held open, so that it is read on when its name is gone.
class StepFollower : public StepSource {
 public:
  explicit StepFollower(std::string path) : path_(std::move(path)) {}

  // Reads what has been appended. True when there is a new step. `now` stands in for the end time of a step that has
  // none.
  bool read_new(double now) override;

  void read_rest(double now) override;  // and puts a file back that was removed, as it was

  const std::vector<StepRecord>& steps() const override { return steps_; }
  int64_t unreadable_lines() const override { return unreadable_lines_; }
  std::string damage() const override { return damage_; }

 private:
  void restore() const;
  void read_appended(double now);
  void check_name();
  void note_damage(const std::string& what);
  void take_text(std::string_view text, double now);
  void take_line(std::string_view line, double now);

  std::string path_, partial_, damage_;
  Descriptor file_;
  int64_t offset_ = 0;
  int64_t unreadable_lines_ = 0;
  std::vector<StepRecord> steps_;
};

}  // namespace tprimat::suite

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
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

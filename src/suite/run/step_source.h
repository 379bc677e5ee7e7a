#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "extract/read_log.h"
#include "result/step_record.h"

namespace tprimat::suite {

// Source of a training's steps while it runs.
class StepSource {
 public:
  virtual ~StepSource() = default;

  // Reads new steps; true if there are any. `now`, seconds since 1970, is the end time of steps without one.
  virtual bool read_new(double now) = 0;
  virtual void read_rest(double now) { read_new(now); }  // once the training has ended
  virtual const std::vector<StepRecord>& steps() const = 0;
  virtual int64_t unreadable_lines() const { return 0; }
  virtual std::string damage() const { return {}; }               // damage to the file, as a sentence; empty: none
  virtual std::optional<logs::ReadLog> take_log() { return {}; }  // where the steps are from a log: all that it states
};

// The steps of a trainer that writes no records, from its log. The whole log is read again whenever it has grown, since
// only then are restarts recognised reliably. Reading takes at most a tenth of the time.
class LogSteps : public StepSource {
 public:
  explicit LogSteps(std::string path) : path_(std::move(path)) {}
  bool read_new(double now) override;
  void read_rest(double now) override;
  const std::vector<StepRecord>& steps() const override { return steps_; }
  std::optional<logs::ReadLog> take_log() override { return std::move(log_); }

 private:
  bool read_all(double now);

  std::string path_;
  int64_t size_ = -1;  // of the log when it was read
  double pause_seconds_ = 0.5;
  SteadyClock::time_point last_read_ = SteadyClock::now();
  std::vector<StepRecord> steps_;
  std::optional<logs::ReadLog> log_;  // that they are from
};

// Reads a file of step records while a trainer still writes it. An incomplete last line waits for its end. Steps are
// kept even if the file is damaged; it stays open, so that it can be read after its removal.
class StepFollower : public StepSource {
 public:
  explicit StepFollower(std::string path) : path_(std::move(path)) {}

  // Reads appended records; true if there is a new step. `now` is the end time of steps without one.
  bool read_new(double now) override;

  void read_rest(double now) override;  // and restores a removed file

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

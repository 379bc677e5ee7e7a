#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "extract/dialects/progress_bar.h"
#include "extract/log_builder.h"

namespace tprimat::logs {

// Follows the one bar of a log that counts training steps: bars of data loading and evaluation are told apart by their
// total, and the bars of other ranks, which a log may hold one after the other, are passed over.
class TrainingBar {
 public:
  // `total`: of the training steps, where the log states it. `starts`: how often it has announced a training so far.
  // True when the bar moved, or was drawn again where it stood.
  bool follow(const ProgressBar& bar, std::optional<int64_t> total, int64_t starts, int64_t line);

  // What is logged next is a training step: should another bar have moved last, that one counts the steps.
  void expect_steps();

  const std::optional<BarReading>& reading() const { return last_; }
  // Where the time of the first record begins; a bar of a resumed run leaps there.
  const std::optional<BarReading>& first() const { return first_; }
  int64_t restarts() const { return restarts_; }

  // One record for each state of the bar: for logs that hold nothing else. Their number.
  int64_t add_steps(LogBuilder& log) const;

 private:
  struct State {
    int64_t line = 0;
    BarReading reading;
  };
  bool begin_again(int64_t starts);
  void keep(const BarReading& reading, int64_t line);

  std::optional<BarReading> last_, first_, other_;
  std::vector<State> states_;
  int64_t total_ = 0, starts_ = 0, restarts_ = 0;
  int64_t skip_ = 0;     // states to leave out between two that are kept
  int64_t skipped_ = 0;  // since the last one kept
};

}  // namespace tprimat::logs

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "extract/log_builder.h"
#include "extract/scan_text.h"

namespace tprimat::logs {

// A reading of a progress bar.
struct BarReading {
  int64_t count = 0;
  int64_t total = -1;                              // -1: not known
  double elapsed_seconds = 0.0;                    // cut to whole seconds
  std::optional<RoundedNumber> seconds_per_count;  // the pace that the bar shows, smoothed over the last counts or all
};

// One state of a tqdm bar: "Epoch 0:  47%|###  | 7/15 [06:19<07:13, 2.10s/it, loss=2.5]". The views point into the
// line.
struct ProgressBar {
  BarReading reading;
  std::string_view title;    // "Epoch 0"; empty when the bar has none
  std::string_view unit;     // "it"; empty when no pace is shown
  std::string_view postfix;  // "loss=2.5"
};

// Removes the next bar from `text`, up to its "]"; nothing if there is none.
std::optional<ProgressBar> take_progress_bar(std::string_view& text);

// The value behind "key=" in "loss=2.5, v_num=, lr=1e-4".
std::optional<std::string_view> postfix_value(std::string_view postfix, std::string_view key);

// The time of one step from two readings of a bar: from its clock if that shows ten seconds or more, else from its
// pace. Sets time, its bounds, its source and mean_of; leaves the step unchanged if the readings do not suffice.
void derive_step_time(const BarReading& from, const BarReading& to, ExtractedStep& step);

// Follows the one bar of a log that counts training steps: bars of data loading and evaluation are recognised by their
// total, and the bars of other ranks, which may follow one after the other, are skipped.
class TrainingBar {
 public:
  // `total`: of the training steps, where the log states it. `starts`: how many trainings it has announced so far. True
  // if the bar advanced or was redrawn.
  bool follow(const ProgressBar& bar, std::optional<int64_t> total, int64_t starts, int64_t line);

  // The next record is a training step: if another bar advanced last, that one counts the steps.
  void expect_steps();

  const std::optional<BarReading>& reading() const { return last_; }
  // Start of the first record's time; a bar of a resumed run jumps there.
  const std::optional<BarReading>& first() const { return first_; }
  int64_t restarts() const { return restarts_; }

  // Adds one record for each state of the bar, for logs without other records. Returns their number.
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

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "extract/extracted_log.h"
#include "extract/scan_text.h"

namespace tprimat::logs {

// Where a progress bar stood.
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

// The next bar of `text`, which is cut behind its "]"; nothing when there is none.
std::optional<ProgressBar> take_progress_bar(std::string_view& text);

// What stands behind "key=" in "loss=2.5, v_num=, lr=1e-4".
std::optional<std::string_view> postfix_value(std::string_view postfix, std::string_view key);

// The time of one step from two readings of a bar: from its clock where that shows ten seconds or more, else from its
// pace. Sets time, its bounds, its source and mean_of; leaves the step alone when the readings do not tell.
void derive_step_time(const BarReading& from, const BarReading& to, ExtractedStep& step);

}  // namespace tprimat::logs

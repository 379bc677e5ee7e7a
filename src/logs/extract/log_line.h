#pragma once

#include <cstdint>
#include <string_view>

#include "extract/figure.h"

namespace tprimat::logs {

// A line as a dialect sees it: without line end, colour codes and launcher prefix. Where a progress bar rewrote a line
// with "\r", each state is a line of its own, with the number of the physical one.
struct LogLine {
  std::string_view text;  // with leading blanks; valid until the reader returns
  int64_t number = 0;     // from 1
  int32_t rank = -1;      // from a prefix such as "[default3]:" or "12: "; -1: there was none
  int32_t ranks = -1;     // of the run, from a prefix such as "[rank-7/8]"; -1: not in the prefix
  Figure unix_time = {};  // from a time stamp at the start, s since 1970, read as UTC; the stamp is cut off the text
  bool is_cut = false;    // the log ends within it; a number at its end was removed
};

}  // namespace tprimat::logs

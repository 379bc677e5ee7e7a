#pragma once

#include <string>

#include "extract/log_line.h"

namespace tprimat::logs {

// Removes what launchers and terminals add to a line: colour codes (also with the escape byte lost), the rank prefixes
// of srun ("12: "), torchrun ("[default3]:", "[rank7]:"), MPI ("[1,4]<stdout>:") and nanotron ("[0434:0]:"), job names
// ("my-job/0 "), the prefix of Primus ("[20251030 07:25:36][rank-7/8][INFO ] [file.py:12] : "), a time stamp, and what
// containers and log collectors add.
class LineCleaner {
 public:
  // The rank that a prefix such as "[default3]:" or "12: " names, and the length of that prefix; length 0: there is
  // none.
  struct RankPrefix {
    int32_t rank = -1;
    size_t length = 0;
  };
  static RankPrefix rank_prefix(std::string_view raw);

  // Removes codes for colours and cursor moves, which may split the words of anchors, from whole lines. The result
  // lives in `storage`, or is `lines` itself where there are none.
  static std::string_view strip_escapes(std::string_view lines, std::string& storage);

  // `raw` without its line end. The text of the result lives until the next call, or as long as `raw`.
  LogLine clean(std::string_view raw, int64_t number);

 private:
  std::string without_escapes_;
};

}  // namespace tprimat::logs

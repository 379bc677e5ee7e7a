#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "extract/dialect.h"
#include "extract/line_cleaner.h"
#include "extract/scan_text.h"

namespace tprimat::logs {

// Shows one reader the lines of a log as the core does: those with an anchor, and those that it asked to follow. A line
// "STEP 7" is a step that another dialect read.
inline ExtractedLog feed_lines(const Dialect& dialect, std::string_view text) {
  const auto reader = dialect.make_reader();
  LogBuilder log;
  LineCleaner cleaner;
  std::set<int32_t> following;
  for (int64_t number = 1; !text.empty(); ++number) {
    const std::string_view raw = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(raw.size() + 1, text.size()));
    const LogLine line = cleaner.clean(raw, number);
    if (line.text.substr(0, 5) == "STEP ")
      log.add(LogBuilder::start_step(line, parse_whole(line.text.substr(5)).value_or(0)));
    const bool anchored = std::any_of(dialect.anchors.begin(), dialect.anchors.end(),
                                      [&](std::string_view anchor) { return contains(raw, anchor); });
    const bool follows = following.contains(line.rank) || (line.rank < 0 && !following.empty());
    if (!anchored && !follows) continue;
    reader->read_line(line, log) ? void(following.insert(line.rank)) : void(following.erase(line.rank));
  }
  reader->finish(log);
  return log.take();
}

}  // namespace tprimat::logs

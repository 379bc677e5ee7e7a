#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compare/compare_runs.h"
#include "history/trend.h"
#include "report/document.h"
#include "text/json.h"

// Pure functions: a history in, a document out.
namespace tprimat::results {

struct HistoryOptions {
  std::string metric = {};      // key; empty: the headline
  size_t last = 10;             // points in a table
  CompareOptions compare = {};  // filters, smallest effect, gates; baseline: a file of the history, "best", or empty
};

struct History {
  std::filesystem::path folder;
  const Metric* metric = nullptr;
  size_t last = 10;
  IndexedFolder index;  // without its files, which are in the trends
  std::vector<Trend> trends;
  double assumed_run_spread = 0;  // relative, for points of one run
  Comparison comparison;          // newest against baseline of each series; only with gates
};

// Throws Error for an unknown metric, a folder without results, and filters that exclude everything.
History read_history(const std::filesystem::path& folder, const HistoryOptions& options);

// With gates, their outcome. Otherwise work_failed if the newest point of a series is not complete, not_comparable if
// the audit withholds its verdict, else done.
ExitStatus history_status(const History& history);

Document build_document(const History& history);
Json history_to_json(const History& history);
std::string render_csv(const History& history);  // one line per point of every series

// "▁▃█": the values between their least and greatest; a gap for none.
std::string draw_sparkline(const std::vector<double>& values);

}  // namespace tprimat::results

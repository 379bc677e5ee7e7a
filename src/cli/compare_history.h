#pragma once

#include <string>

#include "base/exit_status.h"
#include "cli/compare_gates.h"
#include "compare/compare_runs.h"

namespace CLI {
class App;
}

namespace tprimat {

// --history, --metric and --last.
struct HistoryRequest {
  std::string folder, metric;
  std::string output;  // directory for history.md; empty: none is written
  size_t last = 10;
};
void add_history_options(CLI::App& verb, HistoryRequest& request);

// What stdout holds.
enum class CompareFormat { terminal, coloured_terminal, json, markdown, csv };

void print_comparison(const std::string& text, CompareFormat format);

ExitStatus compare_history(const HistoryRequest& request, const CompareOptions& options, CompareFormat format,
                           const CiOutputs& ci);

}  // namespace tprimat

#pragma once

#include <string>

#include "base/error.h"
#include "cli/ci_outputs.h"
#include "command_line/options.h"
#include "compare/compare_runs.h"

namespace tprimat::cli {

// --history, --metric and --last.
struct HistoryRequest {
  std::string folder, metric;
  std::string output;  // directory for history.md; empty: none is written
  size_t last = 10;
};
void add_history_options(CommandLine& verb, HistoryRequest& request);

// What stdout holds.
enum class CompareFormat { terminal, coloured_terminal, json, markdown, csv };

void print_comparison(const std::string& text, CompareFormat format);

ExitStatus compare_history(const HistoryRequest& request, const results::CompareOptions& options, CompareFormat format,
                           const CiOutputs& ci);

}  // namespace tprimat::cli

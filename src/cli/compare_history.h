#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "command_line/options.h"
#include "compare/compare_runs.h"
#include "compare/comparison.h"

namespace tprimat::cli {

// --junit and --annotations: what continuous integration reads of a comparison.
struct CiOutputs {
  std::string junit_path;
  bool annotations = false;
};
void write_ci_outputs(const results::Comparison& comparison, const CiOutputs& outputs);

// --history, --metric and --last.
struct HistoryRequest {
  std::string folder, metric;
  std::string output;  // directory for history.md; empty: none is written
  size_t last = 10;
};
void add_history_options(CommandLine& verb, HistoryRequest& request, const char* default_folder);
std::vector<std::string> metric_keys();

// What stdout holds.
enum class CompareFormat { terminal, coloured_terminal, json, markdown, csv };

void print_comparison(const std::string& text, CompareFormat format);

ExitStatus compare_history(const HistoryRequest& request, const results::CompareOptions& options, CompareFormat format,
                           const CiOutputs& ci);

}  // namespace tprimat::cli

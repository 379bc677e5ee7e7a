#pragma once

#include <string>
#include <utility>
#include <vector>

#include "result/run_result.h"

namespace tprimat::results {

// The content of one log for people: facts, figures, events, warnings.
std::string render_log_summary(const RunResult& result);

// The facts that the log does not state, by who states them: {"config.yaml", "devices 8, SL 2048"}.
std::vector<std::pair<std::string, std::string>> describe_assumed(const RunResult& result);

// One file of a folder. If nothing could be extracted, `result_path` is empty and `why_nothing` says why.
struct ExtractedFile {
  std::string path, result_path, why_nothing;
  RunResult result;  // without its series, which a folder of thousands of logs could not hold
};

void drop_series(ExtractedFile& file);  // except for the last loss

// A table of the runs, then each file without a result, with the reason.
std::string render_extracted_files(const std::vector<ExtractedFile>& files);

}  // namespace tprimat::results

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/log_report.h"

namespace tprimat::results {

// A log that was found and extracted; without a result, why_nothing of the file says why.
struct GatheredFile {
  ExtractedFile file;
  std::string place, model, model_because;
};

struct SearchedPlace {
  std::string name, folder, incomplete;  // incomplete: why not all of it was searched
  bool exists = false;
  size_t logs = 0;
};

// What `extract` without a path found, took and left.
struct GatheredReport {
  std::vector<GatheredFile> taken;
  std::vector<std::pair<std::string, std::string>> passed_over;  // path, and why
  std::vector<SearchedPlace> places;
};

// A table of the runs; then of each log who states what, and where its result is; then the files that were passed over.
// `all`: every one of these, else the first twenty.
std::string render_gathered(const GatheredReport& report, bool all);

}  // namespace tprimat::results

#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "history/entry.h"

namespace tprimat::results {

// A result file as the index knows it.
struct IndexedFile {
  std::string path;  // below the folder
  HistoryEntry entry;
  double unix_time = 0;  // of the run; of the file where the run has none
};

struct IndexedFolder {
  std::vector<IndexedFile> files;    // by path
  std::vector<SkippedFile> skipped;  // what is no result, and why
  size_t files_read = 0, files_gone = 0;
  std::string index_path;  // empty: it was kept in memory only
  std::string note;        // what had to be mended, e.g. that a damaged index was built again
};

// All results in a folder and below. The JSON files are the truth; an index beside them (k_index_name, or in the user's
// cache where the folder cannot be written) spares reading what has not changed: size, time of change and content hash
// are kept of each file. One process at a time works on an index; a damaged one, or one of another version of this
// program, is built again. Throws Error where there is no such folder.
inline constexpr const char* k_index_name = ".tprimat-history.sqlite";
IndexedFolder index_folder(const std::filesystem::path& folder);

}  // namespace tprimat::results

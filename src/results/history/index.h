#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "result/run_result.h"

namespace tprimat::results {

// Runs with the same key form a series: their figures differ only by deliberate changes and noise.
struct SeriesKey {
  std::string model, framework, platform, device, precision, strategy;   // empty: not known
  std::string installation;                                              // label of the framework's; empty: none
  int64_t device_count = 0, global_batch_size = 0, sequence_length = 0;  // 0: not known
  auto operator<=>(const SeriesKey&) const = default;
  static constexpr auto fields() {
    using K = SeriesKey;
    return field_list(field("model", &K::model, "key of the model"), field("framework", &K::framework, "what trained"),
                      field("platform", &K::platform, "nvd, amd or cpu"),
                      field("device", &K::device, "name as the driver gives it"),
                      field("precision", &K::precision, "number format of the matrix products"),
                      field("strategy", &K::strategy, "name of the layout"),
                      field("installation", &K::installation, "label of the framework's installation, or empty"),
                      field("device_count", &K::device_count, "devices of the run, 0: not known"),
                      field("global_batch_size", &K::global_batch_size, "sequences per step, 0: not known"),
                      field("sequence_length", &K::sequence_length, "tokens per sequence, 0: not known"));
  }
};

// "llama, CPU native, 2 x EPYC, bf16, GBS 64, SL 2048, balanced"
std::string describe_series(const SeriesKey& key);

// The index entry of a result file.
struct HistoryEntry {
  SeriesKey series;
  std::string timestamp;  // of the result; empty: none, and the file's time is used
  RunStatus status = RunStatus::complete;
  std::string measurement;  // hash of its measurement_key(): the same in copies of one run; empty: it cannot be a copy
  std::string work;         // hash of its state_work(): equal for equal work
  std::string dataset;      // empty: not known
  std::string fault;        // the first error of the audit of this file alone; empty: none
  std::map<std::string, Estimate> figures;  // by key of the metric
  static constexpr auto fields() {
    using E = HistoryEntry;
    return field_list(field("series", &E::series, "what is the same in all runs of the series"),
                      field("timestamp", &E::timestamp, "when the run started"),
                      field("status", &E::status, "how it ended"),
                      field("measurement", &E::measurement, "the same in copies of one run"),
                      field("work", &E::work, "hash of the work; equal for equal work"),
                      field("dataset", &E::dataset, "what it trained on"),
                      field("fault", &E::fault, "first error that the audit finds in it"),
                      field("figures", &E::figures, "by key of the metric"));
  }
};

HistoryEntry make_entry(const RunResult& result);

// A result file with its index entry.
struct IndexedFile {
  std::string path;  // below the folder
  HistoryEntry entry;
  double unix_time = 0;  // of the run, else of the file
};

struct IndexedFolder {
  std::vector<IndexedFile> files;    // by path
  std::vector<SkippedFile> skipped;  // files that are not results, and why
  size_t files_read = 0, files_gone = 0;
  std::string index_path;  // empty: it was kept in memory only
  std::string note;        // repairs, such as the rebuilding of a damaged index
};

// All results in a folder and below. The JSON files are the truth; an index beside them (k_index_name, or in the user's
// cache where the folder cannot be written) avoids reading unchanged files: it keeps size, modification time and
// content hash of each file. One process at a time works on an index; a damaged one, or one of another version of this
// program, is rebuilt. Throws Error if the folder does not exist.
inline constexpr const char* k_index_name = ".tprimat-history.sqlite";
IndexedFolder index_folder(const std::filesystem::path& folder);

}  // namespace tprimat::results

#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "process/process.h"
#include "sinks/run_tables.h"

namespace tprimat::results {

// Writes results, one after the other, in another tool's format. Each run is written completely or not at all; an
// earlier export of the same name is replaced. Throws Error (work_failed) when it cannot write.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void add(const ExportedRun& run) = 0;
  virtual void finish() {}                                        // after the last run
  virtual std::vector<std::filesystem::path> places() const = 0;  // where to look for it
};

struct SinkPlace {
  std::filesystem::path folder;  // of the export
  ProcessRunner& runner;
};

struct SinkKind {
  std::string_view name;   // as --format knows it
  std::string_view title;  // what it is and who reads it
  // Throws Error (missing_component) if a dependency is not installed. Writes nothing yet.
  std::unique_ptr<Sink> (*open)(const SinkPlace& place);
};

template <class S>
std::unique_ptr<Sink> open_sink(const SinkPlace& place) {
  return std::make_unique<S>(place.folder);
}

std::span<const SinkKind> sink_kinds();

// Throws Error that names all and the nearest.
const SinkKind& find_sink(const std::string& name);

}  // namespace tprimat::results

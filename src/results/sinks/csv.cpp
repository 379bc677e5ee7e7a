#include "sinks/kinds.h"
#include "sinks/tables.h"

namespace tprimat::results {
namespace {

class CsvSink : public Sink {
 public:
  explicit CsvSink(const std::filesystem::path& folder) : folder_(folder) {}
  void add(const ExportedRun& run) override { tables().add(run); }
  void finish() override { tables().finish(); }
  std::vector<std::filesystem::path> places() const override { return {folder_ / "runs.csv", folder_ / "steps.csv"}; }

 private:
  CsvTables& tables() {
    if (!tables_) tables_.emplace(folder_, CsvReader::spreadsheet);
    return *tables_;
  }

  std::filesystem::path folder_;
  std::optional<CsvTables> tables_;
};

}  // namespace

SinkKind csv_sink() {
  return {"csv", "two tables, runs.csv and steps.csv",
          [](const SinkPlace& place) -> std::unique_ptr<Sink> { return std::make_unique<CsvSink>(place.folder); }};
}

}  // namespace tprimat::results

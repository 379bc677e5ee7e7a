#include <fmt/format.h>

#include "base/files.h"
#include "process/process.h"
#include "sinks/csv.h"
#include "sinks/sinks.h"

namespace tprimat::results {

namespace embedded {
extern const std::string_view write_parquet_py;
}

namespace {

namespace fs = std::filesystem;

constexpr double k_seconds_to_import = 60, k_seconds_to_write = 3600;

std::string_view parquet_type(CellType type) {
  switch (type) {
    case CellType::whole: return "int64";
    case CellType::real: return "double";
    case CellType::text: break;
  }
  return "string";
}

void require_pyarrow(ProcessRunner& runner) {
  const auto run = run_captured(runner, {"python3", "-c", "import pyarrow.csv, pyarrow.parquet"}, k_seconds_to_import);
  if (run && run->exit.success()) return;
  throw Error(
      Problem{run ? "Parquet export needs pyarrow, which python3 does not have"
                  : "Parquet export needs pyarrow, and python3 is not installed",
              "--format parquet", "install it: pip install pyarrow, or activate the virtual environment that has it"},
      ExitStatus::missing_component);
}

// Writes the tables as CSV to a temporary folder; a child process with pyarrow converts them to Parquet.
class ParquetSink : public Sink {
 public:
  explicit ParquetSink(const SinkPlace& place)
      : folder_(place.folder), runner_(place.runner), tables_(scratch_.path(), CsvReader::program) {}

  void add(const ExportedRun& run) override { tables_.add(run); }

  void finish() override {
    tables_.finish();
    write_file_atomically(script(), embedded::write_parquet_py, Survives::kill);
    convert("runs", run_table_columns());
    convert("steps", step_table_columns());
  }

  std::vector<fs::path> places() const override { return {folder_ / "runs.parquet", folder_ / "steps.parquet"}; }

 private:
  fs::path script() const { return scratch_.path() / "write_parquet.py"; }

  void convert(const std::string& table, const std::vector<TableColumn>& columns) {
    const std::string source = (scratch_.path() / (table + ".csv")).string(),
                      made = (scratch_.path() / (table + ".parquet")).string();
    std::vector<std::string> argv{"python3", script().string(), source, made};
    for (const TableColumn& column : columns)
      argv.push_back(fmt::format("{}={}", column.key, parquet_type(column.type)));
    const auto run = run_captured(runner_, argv, k_seconds_to_write);
    const fs::path target = folder_ / (table + ".parquet");
    if (!run || !run->exit.success())
      throw Error(Problem{fmt::format("cannot be written: pyarrow ended with {}",
                                      run ? to_string(run->exit) + "\n  " + last_line(run->output) : "no python3"),
                          target.string(), ""},
                  ExitStatus::work_failed);
    write_file_atomically(target, read_file(made), Survives::kill);
  }

  static std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text.substr(text.rfind('\n') + 1).substr(0, 400);
  }

  fs::path folder_;
  ProcessRunner& runner_;
  ScratchFolder scratch_;
  CsvTables tables_;
};

}  // namespace

SinkKind parquet_sink() {
  return {"parquet", "two tables, runs.parquet and steps.parquet, written by pyarrow",
          [](const SinkPlace& place) -> std::unique_ptr<Sink> {
            require_pyarrow(place.runner);
            return std::make_unique<ParquetSink>(place);
          }};
}

}  // namespace tprimat::results

#include "sinks/csv.h"

#include "sinks/sinks.h"
#include "text/csv.h"

namespace tprimat::results {
namespace {

std::string to_csv_line(const std::vector<Cell>& cells, CsvReader reader) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool disarms = reader == CsvReader::spreadsheet && std::holds_alternative<std::string>(cells[i]);
    const std::string text = cell_text(cells[i]);
    line += (i > 0 ? "," : "") + (disarms ? csv_text(text) : csv_cell(text));
  }
  return line + '\n';
}

std::string to_csv_header(const std::vector<TableColumn>& columns) {
  std::vector<Cell> keys;
  for (const TableColumn& column : columns) keys.emplace_back(column.key);
  return to_csv_line(keys, CsvReader::program);
}

Cell cell_of(const std::optional<double>& value) { return value ? Cell(*value) : Cell(); }

std::vector<Cell> step_cells(const std::string& run, const StepRow& row) {
  std::vector<Cell> cells{run,
                          row.step,
                          cell_of(row.unix_time),
                          row.mean_of,
                          row.steady ? int64_t{1} : int64_t{0},
                          std::string(row.label ? enum_name(*row.label) : "")};
  for (const StepFigure& figure : step_figures()) cells.push_back(cell_of(row.*figure.member));
  return cells;
}

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

std::vector<TableColumn> run_table_columns() {
  std::vector<TableColumn> columns;
  for (const RunColumn& column : run_columns()) columns.push_back({column.key, column.type});
  return columns;
}

std::vector<TableColumn> step_table_columns() {
  std::vector<TableColumn> columns{{"run", CellType::text},       {"step", CellType::whole},
                                   {"unix_time", CellType::real}, {"mean_of", CellType::whole},
                                   {"steady", CellType::whole},   {"label", CellType::text}};
  for (const StepFigure& figure : step_figures()) columns.push_back({std::string(figure.key), CellType::real});
  return columns;
}

CsvTables::CsvTables(const std::filesystem::path& folder, CsvReader reader)
    : reader_(reader), runs_(folder / "runs.csv"), steps_(folder / "steps.csv") {
  runs_.write(to_csv_header(run_table_columns()));
  steps_.write(to_csv_header(step_table_columns()));
}

void CsvTables::add(const ExportedRun& run) {
  std::vector<Cell> cells;
  for (const RunColumn& column : run_columns()) cells.push_back(column.read(run));
  runs_.write(to_csv_line(cells, reader_));
  std::string lines;
  for (const StepRow& row : make_step_rows(run.result)) lines += to_csv_line(step_cells(run.name, row), reader_);
  steps_.write(lines);
}

void CsvTables::finish() {
  runs_.finish(Survives::kill);
  steps_.finish(Survives::kill);
}

SinkKind csv_sink() { return {"csv", "two tables, runs.csv and steps.csv", open_sink<CsvSink>}; }

}  // namespace tprimat::results

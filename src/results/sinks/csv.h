#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "sinks/run_tables.h"

// The two tables of an export: one row per run, and one row per step.
namespace tprimat::results {

struct TableColumn {
  std::string key;
  CellType type;
};
std::vector<TableColumn> run_table_columns();
std::vector<TableColumn> step_table_columns();

// Spreadsheets treat text that begins with "=" as a formula; programs want it unchanged.
enum class CsvReader { spreadsheet, program };

// Both as CSV (RFC 4180), runs.csv and steps.csv; unknown values are empty cells.
class CsvTables {
 public:
  CsvTables(const std::filesystem::path& folder, CsvReader reader);
  void add(const ExportedRun& run);
  void finish();

 private:
  CsvReader reader_;
  NewFile runs_, steps_;
};

}  // namespace tprimat::results

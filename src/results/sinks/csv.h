#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "sinks/run_tables.h"

// The two tables of an export: one row a run, and one row a step of each.
namespace tprimat::results {

struct TableColumn {
  std::string key;
  CellType type;
};
std::vector<TableColumn> run_table_columns();
std::vector<TableColumn> step_table_columns();

// Spreadsheets take a text that begins with "=" for a formula; programs want it as it is.
enum class CsvReader { spreadsheet, program };

// Both as CSV (RFC 4180), runs.csv and steps.csv; a cell is empty where nothing is known.
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

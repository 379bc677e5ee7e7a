#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "result/run_result.h"

namespace tprimat::results {

// A result on its way out, under a name that is safe and unique in every format.
struct ExportedRun {
  std::string name;  // letters, digits, '_', '-', '.': fit for a folder
  std::string file;  // where the result was read; UTF-8
  const RunResult& result;
};

// The name of a result file as that of a run: "../out/train cpu.json" -> "train_cpu".
std::string make_run_name(std::string_view path);

// A value of a table; std::monostate: not known.
using Cell = std::variant<std::monostate, int64_t, double, std::string>;
enum class CellType { whole, real, text };

enum class ColumnKind { identity, setting, figure };

struct RunColumn {
  std::string key;
  ColumnKind kind;
  CellType type;
  std::function<Cell(const ExportedRun&)> read;
};

// What a table of runs holds, in order: who ran, what was asked, what came of it.
const std::vector<RunColumn>& run_columns();

// As people and machines read it; empty where it is not known. Doubles keep every bit.
std::string cell_text(const Cell& cell);

}  // namespace tprimat::results

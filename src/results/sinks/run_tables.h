#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "result/run_result.h"

namespace tprimat::results {

// A result to export, under a name that is safe and unique in every format.
struct ExportedRun {
  std::string name;  // letters, digits, '_', '-', '.': fit for a folder
  std::string file;  // path of the result file; UTF-8
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

// The columns of a table of runs, in order: participant, settings, results.
const std::vector<RunColumn>& run_columns();

// As text; empty if unknown. Doubles keep every bit.
std::string cell_text(const Cell& cell);

// One step of a run for trackers and tables: finite, known figures only.
struct StepRow {
  int64_t step = 0;                  // as the run counts it
  int64_t mean_of = 1;               // steps that the figures are the mean of
  bool steady = false;               // of the steady state: no warm-up, no label, a valid time
  std::optional<StepLabel> label;    // why it is excluded: evaluation, checkpoint ...
  double seconds_since_start = 0.0;  // at its end, as far as step times are known
  std::optional<double> unix_time;   // of its end, s since 1970
  std::optional<double> step_time_seconds, tokens_per_second, loss, validation_loss, learning_rate, grad_norm,
      loss_scale, expert_load, dropped_share, aux_loss, z_loss, memory_allocated_gb, power_watts_per_gpu,
      energy_joules_per_gpu;

  // For formats that require it: runs without a start time start in 1970.
  double time_or_elapsed() const { return unix_time.value_or(seconds_since_start); }
};

// Milliseconds since 1970, for formats that require them; 0 for a time without a calendar date.
int64_t to_milliseconds(double seconds);

std::vector<StepRow> make_step_rows(const RunResult& result);

// Start of the first step, s since 1970; nothing if neither steps nor the run state it.
std::optional<double> start_of_steps(const RunResult& result);

// A figure of a step with its names in other tools.
struct StepFigure {
  std::string_view key;  // of columns
  std::string_view tag;  // of TensorBoard, as the native trainer writes it
  std::optional<double> StepRow::*member;
};

std::span<const StepFigure> step_figures();

}  // namespace tprimat::results

#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "trace/kernel_classes.h"
#include "trace/trace.h"
#include "why/step_pieces.h"

namespace tprimat::results {

// What makes two pieces of work the same on both sides. Parts that a trace does not know are empty.
struct WorkKey {
  logs::KernelClass kernel_class = logs::KernelClass::other;
  logs::Phase phase = logs::Phase::unknown;
  std::string operation;  // that launched it, without its vendor's name; of an unknown kernel its own name
  std::string shapes;     // of the operation's inputs; bytes of a collective

  auto operator<=>(const WorkKey&) const = default;
};

// Mean of a quantity of each step; 0 without steps.
double mean_of(const std::vector<double>& series);

// The work of one key in each step.
struct WorkRow {
  WorkKey key;
  std::vector<double> seconds;       // of each step: moments that belong to it
  std::vector<double> gap_seconds;   // short gaps that it ended: Python and the launch before it
  std::vector<double> long_seconds;  // gaps of more than 1 ms that it ended, within a step
  double calls = 0;                  // per step: of the operation, or kernels where the operation is unknown
  double volume = 0;                 // per step: multiplications of a product, else elements; 0: unknown
  bool has_operation = false;

  double mean_seconds() const { return mean_of(seconds); }
};

// The moments of the steps that belong to no work, s of each step.
using MomentSeries = std::array<std::vector<double>, static_cast<size_t>(Moment::idle) + 1>;

struct ClassSum {
  double seconds = 0, calls = 0;  // of the whole recording / steps
};

struct StepWork {
  bool on_gpu = false;
  std::vector<double> step_seconds;  // lengths of the marks
  std::vector<WorkRow> rows;
  MomentSeries moments;            // without what is in rows
  std::vector<double> after_mark;  // s of each step, in which the device works on after the step's mark
  std::array<ClassSum, static_cast<size_t>(logs::KernelClass::other) + 1> classes = {};
  double busy_seconds = 0, hidden_communication_seconds = 0;  // per step

  std::vector<double>& moment(Moment moment) { return moments[static_cast<size_t>(moment)]; }
  const std::vector<double>& moment(Moment moment) const { return moments[static_cast<size_t>(moment)]; }
};

// Adds up the pieces by step and key. Rows, moments and -after_mark add up to the steps' mean length.
StepWork collect_work(const logs::Trace& trace, const StepPieces& pieces);

// "[2048,4096] [4096,14336] bf16" -> {{2048, 4096}, {4096, 14336}}
using Dimensions = std::vector<double>;
std::vector<Dimensions> parse_shapes(std::string_view text);

// How much work a call does, from its shapes: multiplications, or elements of its inputs. 0: unknown.
double volume_of(logs::KernelClass kernel_class, std::string_view shapes);

// "aten::mm [8192,4096] [4096,14336]", "matmul in backward".
std::string describe_key(const WorkKey& key);

}  // namespace tprimat::results

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "memory/arena_plan.h"
#include "memory/rank_shape.h"

namespace tprimat::engine {

// Which part of a whole weight (whole_rows×whole_cols) a rank holds: some of its rows, in this order, and of them the
// columns [first_col, first_col + cols).
struct Shard {
  int64_t whole_rows = 1, whole_cols = 1;
  std::vector<RowRange> rows;
  int64_t first_col = 0, cols = 1;

  static Shard whole(int64_t rows, int64_t cols) { return {rows, cols, {{0, rows}}, 0, cols}; }
  int64_t row_count() const;
  int64_t count() const { return row_count() * cols; }
  int64_t whole_count() const { return whole_rows * whole_cols; }
  bool is_whole() const { return count() == whole_count(); }
  // Index into the whole weight, row by row, of local value `index` (0 <= index < count()).
  int64_t whole_index(int64_t index) const;
  bool operator==(const Shard&) const = default;
};

// Where one weight lives in the flat vector of all weights, which gradients and optimizer states mirror.
struct Parameter {
  std::string name;   // "layers.3.mlp.down.weight"; layers are counted over the whole model
  Shard shard;        // vectors (norms, biases) are one column
  double mean = 0.0;  // initial values are drawn from N(mean, stddev²)
  double stddev = 0.0;
  bool decays = false;         // weight decay applies: matrices yes, norms and biases no
  bool counts_in_norm = true;  // false where another rank of the model counts this copy in the gradient's norm
  bool partial_gradient =
      false;                 // each tensor-parallel rank has a part of the gradient: they are summed over that group
  int64_t shared_from = -1;  // local values from here on are held by several tensor ranks (key/value heads): their
                             // gradients are summed over those; -1: none
  bool is_written_first = false;  // a step's first product writes the whole gradient; later ones add to it
  int64_t offset = 0;             // elements
  int64_t count() const { return shard.count(); }
};

// Weights that are gathered, reduced and released together: a block, an embedding, the head.
struct ParameterUnit {
  std::string name;            // "layers.3"
  int64_t begin = 0, end = 0;  // elements of the flat vector
  int64_t size() const { return end - begin; }
};

// What the planned weights are. Units and weights come in the plan's order.
class ParameterTable {
 public:
  explicit ParameterTable(WeightPlan plan) : plan_(std::move(plan)) {}

  int begin_unit(const std::string& name);  // its number
  int unit_count() const { return static_cast<int>(units_.size()); }
  // Returns the offset of a weight that was planned there, as large as it is, in the unit begun last.
  int64_t add(Parameter parameter, const ElementRange& planned);

  const std::vector<Parameter>& all() const { return all_; }
  const std::vector<ParameterUnit>& units() const { return units_; }
  // Elements of the flat vector, alignment gaps included.
  int64_t size() const { return plan_.size(); }
  int64_t count() const { return plan_.count(); }  // weights held here
  bool is_complete() const { return units_.size() == plan_.units().size() && count_ == plan_.count(); }
  // The elements, among some that hold whole weights, whose gradients must be zero before a step's first backward pass:
  // all but those that it writes.
  std::vector<ElementRange> ranges_to_clear(const ElementRange& of) const;

 private:
  WeightPlan plan_;
  std::vector<Parameter> all_;
  std::vector<ParameterUnit> units_;
  int64_t count_ = 0;  // of all weights added
};

}  // namespace tprimat::engine

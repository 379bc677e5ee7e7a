#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "comm/rank_groups.h"
#include "device/accelerator.h"
#include "device/arena.h"
#include "memory/layer_buffers.h"
#include "nn/op_clock.h"
#include "ops/op_table.h"
#include "parameters/parameters.h"
#include "spec/train_spec.h"

namespace tprimat::engine {

// What a layer needs while it is being built, besides its buffers: the rank's shape, and where weights get their names.
struct Plan : RankShape {
  ParameterTable& parameters;
};

// Σ of the squares of a weight's gradient, by the weight's offset, where the operations that made the gradient found
// it.
class GradientSquares {
 public:
  void note(int64_t offset, double squares) { by_offset_[offset] = squares; }
  void forget(int64_t offset) { by_offset_.erase(offset); }
  void clear() { by_offset_.clear(); }
  std::optional<double> of(int64_t offset) const {
    const auto found = by_offset_.find(offset);
    return found == by_offset_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<int64_t, double> by_offset_;
};

// Weights and gradients of one unit while it works: element `begin` of the flat vectors is at [0].
template <class T>
struct UnitView {
  const T* weights = nullptr;
  Accum<T>* gradients = nullptr;  // nullptr where none are wanted
  int64_t begin = 0;
  bool is_first = false;               // the gradients of weights that are written first are not there yet (Parameter)
  GradientSquares* squares = nullptr;  // nullptr unless backward passes of this rank alone change gradients
};

// Where weights live. Most layouts have them all the time; ZeRO-3 gathers each unit when it is opened.
template <class T>
class WeightHome {
 public:
  virtual ~WeightHome() = default;
  // Weights of the unit, complete, until close(). `next` (or -1) will be opened after it.
  virtual UnitView<T> open(int unit, int next) = 0;
  virtual void close(int unit) = 0;
  // The same with a gradient buffer to add to. Where the view says that it is the first, gradients of weights that are
  // written first hold anything, and the others zeros.
  virtual UnitView<T> open_for_backward(int unit, int next) = 0;
  // This micro batch has added its gradients.
  // `complete` is false where the same micro batch will open the unit for its gradients once more (a tied embedding).
  virtual void close_after_backward(int unit, bool complete) = 0;
};

// What does the work: a device and its operations.
template <class T>
struct Compute {
  Device& device;
  const OpTable<T>& ops;
  Accelerator* accelerator = nullptr;  // the device, where it is a GPU
};

// What a forward or backward pass works with. T is float, bf16, f16, or double for the reference. Only `ops` and
// `device` touch what lies in the arena.
template <class T>
struct Pass {
  Device& device;
  const OpTable<T>& ops;
  const Arena& arena;
  std::byte* bank = nullptr;  // activations of this micro batch
  const RankGroups& ranks;
  double* loss = nullptr;  // Σ of the losses of this pass, nats; added to
  UnitView<T> unit = {};
  OpClock* clock = nullptr;

  template <class V>
  Stored<T, V>* at(Slot<V> slot) const {
    return slot.place == Place::arena ? arena.as<T>(slot) : reinterpret_cast<Stored<T, V>*>(bank + slot.offset);
  }
  template <class V>
  void copy(int64_t count, const V* from, V* to) const {
    const size_t bytes = static_cast<size_t>(count) * sizeof(V);
    ops.copy({from, to, 1, bytes, bytes, bytes});
  }
  // Rows that lie `stride` values apart.
  template <class V>
  struct Rows {
    V* first;
    int64_t stride;
  };
  // `width` values of each of `rows` rows.
  void copy_rows(int64_t rows, int64_t width, Rows<const T> from, Rows<T> to) const {
    const auto bytes = [](int64_t values) { return static_cast<size_t>(values) * sizeof(T); };
    ops.copy({from.first, to.first, rows, bytes(width), bytes(from.stride), bytes(to.stride)});
  }
  template <class V>
  void clear(int64_t count, V* values) const {
    ops.clear(values, static_cast<size_t>(count) * sizeof(V));
  }
  const T* weight(int64_t offset) const { return unit.weights + (offset - unit.begin); }
  Accum<T>* gradient(int64_t offset) const { return unit.gradients + (offset - unit.begin); }
  // What the product that makes the gradient of a weight which is written first does.
  bool adds_to_gradients() const { return !unit.is_first; }
  bool finds_squares() const { return unit.squares != nullptr && ops.matmul_wide_squares != nullptr; }
  // Makes the gradient of the weight at `offset` by a product, or adds to it, and notes its squares where they are
  // found.
  void find_weight_gradient(const MatrixView<const T>& dy, const MatrixView<const T>& x, int64_t offset,
                            bool adds) const {
    const auto to = matrix(gradient(offset), dy.cols, x.cols);
    if (finds_squares())
      unit.squares->note(offset, ops.matmul_wide_squares(transposed(dy), x, to, adds));
    else
      ops.matmul_wide(transposed(dy), x, to, adds);
  }
  // embedding_backward on the table at `offset`. Updates the sum of squares if it was known before.
  void add_embedding_gradient(const EmbeddingShape& shape, const int32_t* tokens, const T* dy, int64_t offset) const {
    const std::optional<double> before = unit.squares == nullptr ? std::nullopt : unit.squares->of(offset);
    if (!before || ops.embedding_backward_squares == nullptr) {
      if (before) unit.squares->forget(offset);
      return ops.embedding_backward(shape, tokens, dy, gradient(offset));
    }
    const double after = *before + ops.embedding_backward_squares(shape, tokens, dy, gradient(offset));
    // Squares are partly added up in float: where less than this share is left, their rounding errors would show.
    constexpr double k_cancelled = 1e-3;
    if (after > k_cancelled * *before)
      unit.squares->note(offset, after);
    else
      unit.squares->forget(offset);
  }
  Pass with(const UnitView<T>& view) const {
    Pass pass = *this;
    pass.unit = view;
    return pass;
  }
};

}  // namespace tprimat::engine

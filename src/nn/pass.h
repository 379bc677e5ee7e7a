#pragma once

#include <cstdint>

#include "comm/rank_groups.h"
#include "device/accelerator.h"
#include "device/arena.h"
#include "nn/op_clock.h"
#include "nn/parameters.h"
#include "ops/op_table.h"
#include "spec/train_spec.h"

namespace tprimat {

// How the ranks of one stage share each layer.
struct Sharing {
  int tensor_rank = 0, tensor_size = 1;    // TP: each matrix is split
  bool sequence_parallel = false;          // SP: the residual stream is split over the tensor-parallel ranks
  int context_rank = 0, context_size = 1;  // CP: each sequence is split
};

// One micro batch as one tensor-parallel group sees it. Its tokens are sequences×local_length; each group of tensor
// ranks of a context-parallel layout has two pieces of every sequence (see ContextPieces).
struct BatchShape {
  int64_t sequences = 0;
  int64_t sequence_length = 0;  // whole
  int64_t local_length = 0;     // sequence_length / CP
  int64_t tokens() const { return sequences * local_length; }
};

// Each chunk's product adds to the whole gradient of the head, so a few large chunks move less memory than many; on a
// GPU the products would be small for its multiprocessors besides.
inline constexpr int64_t k_most_logits_on_cpu = int64_t{56} << 20, k_most_logits_on_gpu = int64_t{512} << 20;

// Everything a layer needs while it is being built: where its weights and buffers will live.
struct Plan {
  ParameterTable& parameters;
  ArenaPlan& workspace;  // buffers that all micro batches and layers share
  ArenaPlan& kept;       // what a layer's forward pass keeps for its backward pass
  BatchShape batch;
  Sharing sharing;
  Recompute recompute = Recompute::none;
  bool rounds_to_fp8 = false;                  // what the blocks' products multiply
  bool has_fp8_units = false;                  // the device multiplies such numbers itself
  int64_t most_logits = k_most_logits_on_cpu;  // of the whole vocabulary, that exist at a time

  int64_t tokens() const { return batch.tokens(); }
  // Rows of the residual stream that live here.
  int64_t stream_tokens() const { return sharing.sequence_parallel ? tokens() / sharing.tensor_size : tokens(); }
  // For activations that are cheap to compute again.
  ArenaPlan& cheap() const { return recompute == Recompute::selective ? workspace : kept; }
};

// Weights and gradients of one unit while it works: element `begin` of the flat vectors is at [0].
template <class T>
struct UnitView {
  const T* weights = nullptr;
  Accum<T>* gradients = nullptr;  // nullptr where none are wanted
  int64_t begin = 0;
  bool is_first = false;  // the gradients of weights that are written first are not there yet (Parameter)
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
  V* at(Slot<V> slot) const {
    return slot.place == Place::arena ? arena.at(slot) : reinterpret_cast<V*>(bank + slot.offset);
  }
  template <class V>
  void copy(int64_t count, const V* from, V* to) const {
    const size_t bytes = static_cast<size_t>(count) * sizeof(V);
    ops.copy({from, to, 1, bytes, bytes, bytes});
  }
  // `width` values of each of `rows` rows, which lie `from_stride` and `to_stride` values apart.
  template <class V>
  void copy_rows(int64_t rows, int64_t width, const V* from, int64_t from_stride, V* to, int64_t to_stride) const {
    const auto bytes = [](int64_t values) { return static_cast<size_t>(values) * sizeof(V); };
    ops.copy({from, to, rows, bytes(width), bytes(from_stride), bytes(to_stride)});
  }
  template <class V>
  void clear(int64_t count, V* values) const {
    ops.clear(values, static_cast<size_t>(count) * sizeof(V));
  }
  const T* weight(int64_t offset) const { return unit.weights + (offset - unit.begin); }
  Accum<T>* gradient(int64_t offset) const { return unit.gradients + (offset - unit.begin); }
  // What the product that makes the gradient of a weight which is written first does.
  bool adds_to_gradients() const { return !unit.is_first; }
  Pass with(const UnitView<T>& view) const {
    Pass pass = *this;
    pass.unit = view;
    return pass;
  }
};

}  // namespace tprimat

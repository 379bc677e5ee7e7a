#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "parameters/parameters.h"
#include "train/engine.h"
#include "train/weight_store.h"

namespace tprimat::engine {

// AdamW over the own share of the weights, with its states and, where weights are kept in a short format, a master copy
// in full precision. Where the specification wants fewer bytes, moments in bf16 or no master copy, what is kept is
// rounded stochastically (ops/adamw.h); others see all of it in full precision.
template <class T>
class Optimizer {
 public:
  Optimizer(const TrainSpec& spec, const ParameterTable& table, const WeightStore<T>& store,
            const OptimizerBuffers& buffers);
  // Once the arena exists and the store is attached.
  void attach(const Arena& arena, const Compute<T>& compute, const RankGroups& ranks);

  void draw_weights(int64_t seed);
  // Rounds the masters to the weights that the model multiplies with, after drawing or loading them.
  void round_weights();
  // Σ of the squares of this rank's part of the whole gradient, each value counted on one rank only.
  // Reads only gradients whose squares are not known (GradientSquares); `clock`: nullptr, or what times it.
  double sum_of_gradient_squares(OpClock* clock) const;
  // `update`: the first is 1. Gradients are multiplied by gradient_scale first.
  void update(double learning_rate, double gradient_scale, int64_t update);
  // What an update reads and writes at least, in bytes: the gradient is read; moments, and the weights in the format
  // that keeps most of them, are read and written; rounded weights beside masters are written.
  double update_bytes() const;
  void visit_state(const StateVisitor& visit) const;
  void visit_gradients(const StateVisitor& visit) const;  // of the own share, as kind weights

 private:
  static constexpr bool k_is_short = !std::is_same_v<T, Accum<T>>;
  // A piece of one weight in the own share of its unit.
  struct Piece {
    const Parameter* parameter;
    int unit;
    int64_t begin, count;  // values of the parameter's local part
    int64_t in_share;      // elements from the share's beginning
    int64_t owned;         // elements of the vector of all own shares
    int64_t counted;       // of `count`, how many this rank counts in the gradient's norm
  };
  template <class M>
  using CompactRanges = std::vector<CompactAdamwRange<T, M>>;

  void find_pieces(const RankGroups& ranks);
  void find_ranges();
  template <class M>
  void add_compact_range(const Piece& piece, M* first_moment, M* second_moment, CompactRanges<M>& ranges) const;
  // Of a piece's values, kept as V.
  template <class V>
  void show(const Piece& piece, StateKind kind, V* values, const StateVisitor& visit) const;
  template <class V>
  void show_copy(const Piece& piece, StateKind kind, V* values, const StateVisitor& visit) const;
  int64_t counted_values(const Parameter& parameter, const RankGroups& ranks) const;
  bool has_masters() const { return k_is_short && spec_.master_weights; }
  bool has_short_moments() const { return spec_.moments == MomentFormat::bf16; }
  Accum<T>* master(const Piece& piece) const { return arena_->as<T>(buffers_.master) + piece.owned; }
  T* weights(const Piece& piece) const { return store_.owned_weights(piece.unit) + piece.in_share; }

  const OptimizerSpec spec_;
  const ParameterTable& table_;
  const WeightStore<T>& store_;
  const int64_t seed_;
  const OptimizerBuffers buffers_;
  const Arena* arena_ = nullptr;
  std::optional<Compute<T>> compute_;
  std::vector<Piece> pieces_;
  std::vector<AdamwRange<T>> ranges_;  // of the three lists one has all pieces
  CompactRanges<Accum<T>> compact_ranges_;
  CompactRanges<bf16> short_moment_ranges_;
};

}  // namespace tprimat::engine

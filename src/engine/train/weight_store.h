#pragma once

#include <string>
#include <vector>

#include "memory/training_plan.h"
#include "nn/pass.h"

namespace tprimat::engine {

// Weights and gradients of one rank, and how data-parallel ranks share them (ZeRO, Rajbhandari et al., arXiv
// 1910.02054):
//   stage 0  every rank has all; gradients are summed by all-reduce
//   stage 1  each rank updates its share of every unit: gradients by reduce-scatter, new weights by all-gather
//   stage 2  the gradient's sum is kept for the own share only
//   stage 3  weights are kept for the own share only, and gathered unit by unit, the next one while one works
// A unit's share of rank r is its r-th equal part. Reductions run while the backward pass goes on.
template <class T>
class WeightStore final : public WeightHome<T> {
 public:
  // `table` is complete.
  WeightStore(const ParameterTable& table, const WeightBuffers& buffers);
  // Once the arena exists.
  void attach(const Arena& arena, const OpTable<T>& ops, const RankGroups& ranks);

  UnitView<T> open(int unit, int next) override;
  void close(int unit) override;
  UnitView<T> open_for_backward(int unit, int next) override;
  void close_after_backward(int unit, bool complete) override;

  // Before a step: what its first backward passes do not write themselves.
  void clear_gradients();
  // Said before each backward pass: whether it is the last of this step for its units.
  void announce_last(bool last) { last_micro_batch_ = last; }
  // Sums over ranks that are still to be done. `tied_unit`: whose two copies on the first and last stage are summed, or
  // -1.
  void finish_gradients(int tied_unit);
  // After the own shares were updated: brings them to all ranks.
  void publish_weights();

  // The own share of a unit; `begin` is its first element in the flat vector.
  struct Share {
    int64_t begin = 0, size = 0;
    int64_t owned_begin = 0;  // of the vector of all own shares, which optimizer states mirror
  };
  const std::vector<Share>& shares() const { return shares_; }
  int64_t owned_size() const { return owned_size_; }
  T* owned_weights(int unit) const;
  const GradientSquares& squares() const { return squares_; }
  Accum<T>* owned_gradients(int unit) const;

 private:
  struct GatherBuffer {
    int unit = -1;  // whose weights are in it
    int uses = 0;
    TransferPtr pending;
  };
  struct ReduceBuffer {
    int unit = -1;  // whose gradients are in it, or were last
    bool open = false;
    TransferPtr pending;
  };
  static constexpr int k_gather_buffers = WeightBuffers::k_gathered_units;
  static constexpr int k_reduce_buffers = WeightBuffers::k_reduced_units;

  bool splits_gradients() const { return buffers_.splits_gradients(); }
  bool splits_weights() const { return buffers_.splits_weights(); }
  T* kept_weights() const { return arena_->as<T>(buffers_.weights); }
  Accum<T>* kept_gradients() const { return arena_->as<T>(buffers_.gradients); }
  const ParameterUnit& unit_at(int unit) const { return table_.units()[static_cast<size_t>(unit)]; }
  const Share& share_at(int unit) const { return shares_[static_cast<size_t>(unit)]; }
  T* gather_data(int buffer) const { return arena_->as<T>(buffers_.gathered) + buffer * largest_unit_; }
  Accum<T>* reduce_data(int buffer) const { return arena_->as<T>(buffers_.reduced) + buffer * largest_unit_; }
  Accum<T>* reduced_share(int buffer) const {
    return arena_->as<T>(buffers_.reduced_shares) + buffer * (largest_unit_ / data_size_);
  }
  bool is_first(int unit) const { return !begun_[static_cast<size_t>(unit)]; }
  void clear(Accum<T>* values, int64_t count) const {
    ops_->clear(values, static_cast<size_t>(count) * sizeof *values);
  }
  // Of gradients whose element `begin` of the flat vector is the first.
  void clear(Accum<T>* gradients, int64_t begin, const std::vector<ElementRange>& ranges) const {
    std::vector<ClearRange<Accum<T>>> cleared;
    for (const ElementRange& range : ranges) cleared.push_back({gradients + (range.begin - begin), range.size()});
    ops_->clear_ranges(cleared);
  }
  int buffer_with(int unit) const;
  int gather(int unit);
  int take_reduce_buffer(int unit);
  void settle(int buffer);
  void sum_over_model_ranks(int unit, Accum<T>* gradients);
  void start_reduction(int unit);

  const ParameterTable& table_;
  const WeightBuffers buffers_;
  const int64_t stage_;
  const int data_size_;
  int64_t largest_unit_ = 0;
  std::vector<Share> shares_;
  int64_t owned_size_ = 0;
  std::vector<bool> begun_;  // units whose gradients, in the buffer that is opened next, hold something
  std::vector<std::vector<ElementRange>> to_clear_;  // of each unit where gradients are split; of all units together
  const Arena* arena_ = nullptr;
  const OpTable<T>* ops_ = nullptr;
  const RankGroups* ranks_ = nullptr;
  std::vector<GatherBuffer> gathers_;
  std::vector<ReduceBuffer> reductions_;
  int oldest_reduction_ = 0;
  std::vector<TransferPtr> pending_;  // reductions of whole units
  bool last_micro_batch_ = false;
  GradientSquares squares_;  // empty where ranks share gradients
};

}  // namespace tprimat::engine

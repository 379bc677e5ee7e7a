#include "train/optimizer.h"

#include <algorithm>

#include "base/check.h"
#include "nn/initial_values.h"

namespace tprimat::engine {

template <class T>
Optimizer<T>::Optimizer(const TrainSpec& spec, const ParameterTable& table, const WeightStore<T>& store,
                        const OptimizerBuffers& buffers)
    : spec_(spec.optimizer), table_(table), store_(store), seed_(spec.seed), buffers_(buffers) {
  const int64_t moments = has_short_moments() ? buffers.short_second_moment.count : buffers.second_moment.count;
  CHECK(moments == store.owned_size() && buffers.master.count == (has_masters() ? moments : 0));
}

template <class T>
void Optimizer<T>::attach(const Arena& arena, const Compute<T>& compute, const RankGroups& ranks) {
  arena_ = &arena;
  compute_.emplace(compute);
  find_pieces(ranks);
  find_ranges();
}

template <class T>
template <class M>
void Optimizer<T>::add_compact_range(const Piece& piece, M* first_moment, M* second_moment,
                                     CompactRanges<M>& ranges) const {
  ranges.push_back({piece.count, piece.parameter->decays ? spec_.weight_decay : 0.0,
                    piece.parameter->offset + piece.begin, store_.owned_gradients(piece.unit) + piece.in_share,
                    has_masters() ? master(piece) : nullptr, first_moment, second_moment, weights(piece)});
}

template <class T>
void Optimizer<T>::find_ranges() {
  for (const Piece& piece : pieces_) {
    if (has_short_moments()) {
      add_compact_range(piece, arena_->as<T>(buffers_.short_first_moment) + piece.owned,
                        arena_->as<T>(buffers_.short_second_moment) + piece.owned, short_moment_ranges_);
      continue;
    }
    Accum<T>*const first = arena_->as<T>(buffers_.first_moment) + piece.owned, *const second =
                                                                                   arena_->as<T>(
                                                                                       buffers_.second_moment) +
                                                                                   piece.owned;
    if (k_is_short && !has_masters()) {
      add_compact_range(piece, first, second, compact_ranges_);
      continue;
    }
    Accum<T>* full = nullptr;
    if constexpr (k_is_short)
      full = master(piece);
    else
      full = weights(piece);
    ranges_.push_back({piece.count, piece.parameter->decays ? spec_.weight_decay : 0.0,
                       store_.owned_gradients(piece.unit) + piece.in_share, full, first, second, weights(piece)});
  }
}

// Of a weight's local values, how many from the first on this rank counts.
template <class T>
int64_t Optimizer<T>::counted_values(const Parameter& parameter, const RankGroups& ranks) const {
  if (!parameter.counts_in_norm) return 0;
  return parameter.shared_from >= 0 && ranks.key_value->rank() > 0 ? parameter.shared_from : parameter.count();
}

template <class T>
void Optimizer<T>::find_pieces(const RankGroups& ranks) {
  for (int unit = 0; unit < table_.unit_count(); ++unit) {
    const typename WeightStore<T>::Share& share = store_.shares()[static_cast<size_t>(unit)];
    // Without sharing every data-parallel rank has the same gradient: the first one counts it.
    const bool has_all = share.size == table_.units()[static_cast<size_t>(unit)].size();
    const bool counts = !has_all || ranks.data->rank() == 0;
    for (const Parameter& parameter : table_.all()) {
      const int64_t first = std::max(parameter.offset, share.begin);
      const int64_t last = std::min(parameter.offset + parameter.count(), share.begin + share.size);
      if (first >= last) continue;
      const int64_t begin = first - parameter.offset, count = last - first, in_share = first - share.begin;
      const int64_t counted = counts ? std::clamp<int64_t>(counted_values(parameter, ranks) - begin, 0, count) : 0;
      pieces_.push_back({&parameter, unit, begin, count, in_share, share.owned_begin + in_share, counted});
    }
  }
}

template <class T>
void Optimizer<T>::draw_weights(int64_t seed) {
  for (const Piece& piece : pieces_)
    for (const auto& [first, count, draw] : initial_values(*piece.parameter, seed, piece.begin, piece.count))
      if (has_masters())
        compute_->ops.draw_normal_wide(count, draw, master(piece) + first);
      else
        compute_->ops.draw_normal(count, draw, weights(piece) + first);
  round_weights();
}

template <class T>
void Optimizer<T>::round_weights() {
  if (!has_masters()) return;
  for (const Piece& piece : pieces_) compute_->ops.convert(piece.count, master(piece), weights(piece));
}

template <class T>
double Optimizer<T>::sum_of_gradient_squares(OpClock* clock) const {
  double known = 0, bytes = 0;
  std::vector<SquaresRange<Accum<T>>> unknown;
  for (const Piece& piece : pieces_) {
    const bool is_whole = piece.counted == piece.parameter->count();
    if (const auto squares = store_.squares().of(piece.parameter->offset); is_whole && squares) {
      known += *squares;
      continue;
    }
    unknown.push_back({store_.owned_gradients(piece.unit) + piece.in_share, piece.counted});
    bytes += static_cast<double>(piece.counted) * sizeof(Accum<T>);
  }
  const OpTimer timer(clock, "norm of the gradients", {0, bytes});
  return known + compute_->ops.sum_of_squares(unknown);
}

template <class T>
void Optimizer<T>::update(double learning_rate, double gradient_scale, int64_t update) {
  const AdamwStep step{learning_rate, spec_.beta1, spec_.beta2, spec_.epsilon, gradient_scale, update};
  const auto seed = static_cast<uint64_t>(seed_);
  if (has_short_moments())
    compute_->ops.adamw_bf16_moments(step, seed, short_moment_ranges_);
  else if (!compact_ranges_.empty())
    compute_->ops.adamw_compact(step, seed, compact_ranges_);
  else
    compute_->ops.adamw(step, ranges_);
}

template <class T>
double Optimizer<T>::update_bytes() const {
  const double moments = 4.0 * (has_short_moments() ? sizeof(bf16) : sizeof(Accum<T>));
  const double weights = has_masters() ? 2.0 * sizeof(Accum<T>) + sizeof(T) : 2.0 * sizeof(T);
  return static_cast<double>(store_.owned_size()) * (sizeof(Accum<T>) + moments + weights);
}

// The visitor may write: what lies on a GPU or in a short format comes to the host for it and goes back.
template <class T>
template <class V>
void Optimizer<T>::show_copy(const Piece& piece, StateKind kind, V* values, const StateVisitor& visit) const {
  const auto count = static_cast<size_t>(piece.count);
  std::vector<V> kept(count);
  std::vector<Accum<V>> wide(count);
  compute_->device.download(kept.data(), values, count * sizeof(V));
  std::transform(kept.begin(), kept.end(), wide.begin(), widen<V>);
  visit({kind, *piece.parameter, piece.begin, std::span<Accum<V>>(wide)});
  std::transform(wide.begin(), wide.end(), kept.begin(), narrow<V>);
  compute_->device.upload(values, kept.data(), count * sizeof(V));
}

template <class T>
template <class V>
void Optimizer<T>::show(const Piece& piece, StateKind kind, V* values, const StateVisitor& visit) const {
  if constexpr (std::is_same_v<V, Accum<V>>)
    if (compute_->device.is_host())
      return visit({kind, *piece.parameter, piece.begin, std::span<V>(values, static_cast<size_t>(piece.count))});
  show_copy(piece, kind, values, visit);
}

template <class T>
void Optimizer<T>::visit_state(const StateVisitor& visit) const {
  for (const Piece& piece : pieces_) {
    if (has_masters())
      show(piece, StateKind::weights, master(piece), visit);
    else
      show(piece, StateKind::weights, weights(piece), visit);
    if (has_short_moments()) {
      show(piece, StateKind::first_moment, arena_->as<T>(buffers_.short_first_moment) + piece.owned, visit);
      show(piece, StateKind::second_moment, arena_->as<T>(buffers_.short_second_moment) + piece.owned, visit);
    } else {
      show(piece, StateKind::first_moment, arena_->as<T>(buffers_.first_moment) + piece.owned, visit);
      show(piece, StateKind::second_moment, arena_->as<T>(buffers_.second_moment) + piece.owned, visit);
    }
  }
}

template <class T>
void Optimizer<T>::visit_gradients(const StateVisitor& visit) const {
  for (const Piece& piece : pieces_)
    show(piece, StateKind::weights, store_.owned_gradients(piece.unit) + piece.in_share, visit);
}

template class Optimizer<float>;
template class Optimizer<bf16>;
template class Optimizer<f16>;
template class Optimizer<double>;

}  // namespace tprimat::engine

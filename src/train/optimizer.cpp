#include "train/optimizer.h"

#include <algorithm>

#include "device/parallel.h"

namespace tprimat {

template <class T>
Optimizer<T>::Optimizer(const TrainSpec& spec, const ParameterTable& table, const WeightStore<T>& store,
                        ArenaPlan& plan)
    : spec_(spec.optimizer), table_(table), store_(store) {
  if (k_has_master) master_ = plan.reserve<Accum<T>>("master weights", store.owned_size());
  first_moment_ = plan.reserve<Accum<T>>("optimizer", store.owned_size());
  second_moment_ = plan.reserve<Accum<T>>("optimizer", store.owned_size());
}

template <class T>
void Optimizer<T>::attach(const Arena& arena, const Compute<T>& compute, const RankGroups& ranks) {
  arena_ = &arena;
  compute_.emplace(compute);
  find_pieces(ranks);
  for (const Piece& piece : pieces_)
    squares_.push_back({store_.owned_gradients(piece.unit) + piece.in_share, piece.counted});
  for (const Piece& piece : pieces_)
    ranges_.push_back({piece.count, piece.parameter->decays ? spec_.weight_decay : 0.0,
                       store_.owned_gradients(piece.unit) + piece.in_share, master(piece),
                       arena.at(first_moment_) + piece.owned, arena.at(second_moment_) + piece.owned, weights(piece)});
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
Accum<T>* Optimizer<T>::master(const Piece& piece) const {
  if constexpr (k_has_master)
    return arena_->at(master_) + piece.owned;
  else
    return weights(piece);
}

template <class T>
void Optimizer<T>::draw_weights(int64_t seed) {
  constexpr int64_t k_at_a_time = int64_t{1} << 22;
  std::vector<Accum<T>> drawn(static_cast<size_t>(k_at_a_time));
  for (const Piece& piece : pieces_) {
    const InitialValues initial(*piece.parameter, seed);
    for (int64_t first = 0; first < piece.count; first += k_at_a_time) {
      const int64_t count = std::min(k_at_a_time, piece.count - first);
      parallel_ranges(count, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i)
          drawn[static_cast<size_t>(i)] =
              static_cast<Accum<T>>(initial.at(piece.parameter->shard.whole_index(piece.begin + first + i)));
      });
      compute_->device.upload(master(piece) + first, drawn.data(), static_cast<size_t>(count) * sizeof(Accum<T>));
    }
  }
  round_weights();
}

template <class T>
void Optimizer<T>::round_weights() {
  if constexpr (k_has_master)
    for (const Piece& piece : pieces_) compute_->ops.convert(piece.count, master(piece), weights(piece));
}

template <class T>
double Optimizer<T>::sum_of_gradient_squares() const {
  return compute_->ops.sum_of_squares(squares_);
}

template <class T>
void Optimizer<T>::update(double learning_rate, double gradient_scale, int64_t update) {
  compute_->ops.adamw({learning_rate, spec_.beta1, spec_.beta2, spec_.epsilon, gradient_scale, update}, ranges_);
}

// The visitor may write: what lies on a GPU comes to the host for it and goes back.
template <class T>
void Optimizer<T>::show(const Piece& piece, StateKind kind, Accum<T>* values, const StateVisitor& visit) const {
  const auto count = static_cast<size_t>(piece.count);
  Device& device = compute_->device;
  if (device.is_host()) return visit({kind, *piece.parameter, piece.begin, std::span<Accum<T>>(values, count)});
  std::vector<Accum<T>> copies(count);
  device.download(copies.data(), values, count * sizeof(Accum<T>));
  visit({kind, *piece.parameter, piece.begin, std::span<Accum<T>>(copies)});
  device.upload(values, copies.data(), count * sizeof(Accum<T>));
}

template <class T>
void Optimizer<T>::visit_state(const StateVisitor& visit) const {
  for (const Piece& piece : pieces_) {
    show(piece, StateKind::weights, master(piece), visit);
    show(piece, StateKind::first_moment, arena_->at(first_moment_) + piece.owned, visit);
    show(piece, StateKind::second_moment, arena_->at(second_moment_) + piece.owned, visit);
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

}  // namespace tprimat

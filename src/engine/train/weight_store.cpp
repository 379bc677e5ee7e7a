#include "train/weight_store.h"

#include <algorithm>

#include "base/check.h"

namespace tprimat::engine {

template <class T>
WeightStore<T>::WeightStore(const ParameterTable& table, const WeightBuffers& buffers)
    : table_(table), buffers_(buffers), stage_(buffers.zero_stage), data_size_(buffers.data_size) {
  CHECK(table.is_complete());
  for (const ParameterUnit& unit : table.units()) {
    const int64_t size = stage_ == 0 ? unit.size() : unit.size() / data_size_;
    CHECK(stage_ == 0 || unit.size() % data_size_ == 0);
    shares_.push_back({unit.begin, size, owned_size_});  // begin is moved to the own rank's by attach()
    owned_size_ += size;
    largest_unit_ = std::max(largest_unit_, unit.size());
  }
  CHECK(owned_size_ == buffers.owned);
  begun_.resize(shares_.size());
  if (splits_gradients())
    for (const ParameterUnit& unit : table.units()) to_clear_.push_back(table.ranges_to_clear({unit.begin, unit.end}));
  else
    to_clear_.push_back(table.ranges_to_clear({0, table.size()}));
  if (splits_weights()) gathers_.resize(k_gather_buffers);
  if (splits_gradients()) reductions_.resize(k_reduce_buffers);
}

template <class T>
void WeightStore<T>::attach(const Arena& arena, const OpTable<T>& ops, const RankGroups& ranks) {
  arena_ = &arena;
  ops_ = &ops;
  ranks_ = &ranks;
  if (stage_ == 0) return;
  for (Share& share : shares_) share.begin += ranks.data->rank() * share.size;
}

template <class T>
T* WeightStore<T>::owned_weights(int unit) const {
  const Share& share = share_at(unit);
  return kept_weights() + (splits_weights() ? share.owned_begin : share.begin);
}

template <class T>
Accum<T>* WeightStore<T>::owned_gradients(int unit) const {
  const Share& share = share_at(unit);
  return kept_gradients() + (splits_gradients() ? share.owned_begin : share.begin);
}

template <class T>
int WeightStore<T>::buffer_with(int unit) const {
  for (int i = 0; i < static_cast<int>(gathers_.size()); ++i)
    if (gathers_[static_cast<size_t>(i)].unit == unit) return i;
  return -1;
}

// The buffer that has, or will have, the unit's weights; -1 when all are in use.
template <class T>
int WeightStore<T>::gather(int unit) {
  const int found = buffer_with(unit);
  if (found >= 0) return found;
  for (int i = 0; i < static_cast<int>(gathers_.size()); ++i) {
    GatherBuffer& buffer = gathers_[static_cast<size_t>(i)];
    if (buffer.uses > 0 || buffer.pending) continue;
    buffer.unit = unit;
    buffer.pending = ranks_->data->start_all_gather(comm_buffer(owned_weights(unit), share_at(unit).size),
                                                    comm_buffer(gather_data(i), unit_at(unit).size()));
    return i;
  }
  return -1;
}

template <class T>
UnitView<T> WeightStore<T>::open(int unit, int next) {
  const int64_t begin = unit_at(unit).begin;
  if (data_size_ > 1) ranks_->data->progress();
  if (!splits_weights()) return {kept_weights() + begin, nullptr, begin};
  const int index = gather(unit);
  CHECK(index >= 0);
  GatherBuffer& buffer = gathers_[static_cast<size_t>(index)];
  if (buffer.pending) buffer.pending->wait();
  buffer.pending.reset();
  ++buffer.uses;
  if (next >= 0) gather(next);
  return {gather_data(index), nullptr, begin};
}

template <class T>
void WeightStore<T>::close(int unit) {
  if (splits_weights()) --gathers_[static_cast<size_t>(buffer_with(unit))].uses;
}

template <class T>
void WeightStore<T>::settle(int buffer) {
  ReduceBuffer& reduction = reductions_[static_cast<size_t>(buffer)];
  if (!reduction.pending) return;
  reduction.pending->wait();
  reduction.pending.reset();
  Accum<T>* const total = owned_gradients(reduction.unit);
  ops_->add_wide(share_at(reduction.unit).size, total, reduced_share(buffer), total);
}

template <class T>
int WeightStore<T>::take_reduce_buffer(int unit) {
  int chosen = oldest_reduction_;
  if (reductions_[static_cast<size_t>(chosen)].open) chosen = 1 - chosen;
  ReduceBuffer& buffer = reductions_[static_cast<size_t>(chosen)];
  CHECK(!buffer.open);
  settle(chosen);
  oldest_reduction_ = 1 - chosen;
  buffer.unit = unit;
  buffer.open = true;
  if (is_first(unit))
    clear(reduce_data(chosen), unit_at(unit).begin, to_clear_[static_cast<size_t>(unit)]);
  else
    clear(reduce_data(chosen), unit_at(unit).size());
  return chosen;
}

template <class T>
UnitView<T> WeightStore<T>::open_for_backward(int unit, int next) {
  UnitView<T> view = open(unit, next);
  view.is_first = is_first(unit);
  view.gradients = splits_gradients() ? reduce_data(take_reduce_buffer(unit)) : kept_gradients() + unit_at(unit).begin;
  if (ranks_->world->size() == 1) view.squares = &squares_;
  begun_[static_cast<size_t>(unit)] = true;
  return view;
}

// Gradients of which every tensor-parallel rank has a part, or several ranks have the same weight.
template <class T>
void WeightStore<T>::sum_over_model_ranks(int unit, Accum<T>* gradients) {
  const ParameterUnit& range = unit_at(unit);
  for (const Parameter& parameter : table_.all()) {
    if (parameter.offset < range.begin || parameter.offset >= range.end) continue;
    Accum<T>* const first = gradients + (parameter.offset - range.begin);
    if (parameter.partial_gradient) ranks_->tensor->all_reduce(first, parameter.count());
    if (parameter.shared_from >= 0 && ranks_->key_value->size() > 1)
      ranks_->key_value->all_reduce(first + parameter.shared_from, parameter.count() - parameter.shared_from);
  }
}

// Of a whole unit, in its place.
template <class T>
void WeightStore<T>::start_reduction(int unit) {
  Accum<T>* const gradients = kept_gradients() + unit_at(unit).begin;
  sum_over_model_ranks(unit, gradients);
  if (data_size_ == 1) return;
  const CommBuffer whole = comm_buffer(gradients, unit_at(unit).size());
  if (stage_ == 0)
    pending_.push_back(ranks_->data->start_all_reduce(whole, Reduction::sum));
  else
    pending_.push_back(
        ranks_->data->start_reduce_scatter(whole, comm_buffer(owned_gradients(unit), share_at(unit).size)));
}

template <class T>
void WeightStore<T>::close_after_backward(int unit, bool complete) {
  close(unit);
  if (!splits_gradients()) {
    if (last_micro_batch_ && complete) start_reduction(unit);
    return;
  }
  if (complete) begun_[static_cast<size_t>(unit)] = false;  // the next micro batch has a buffer of its own
  for (int i = 0; i < k_reduce_buffers; ++i) {
    ReduceBuffer& buffer = reductions_[static_cast<size_t>(i)];
    if (!buffer.open || buffer.unit != unit) continue;
    sum_over_model_ranks(unit, reduce_data(i));
    buffer.open = false;
    buffer.pending = ranks_->data->start_reduce_scatter(comm_buffer(reduce_data(i), unit_at(unit).size()),
                                                        comm_buffer(reduced_share(i), share_at(unit).size));
  }
}

template <class T>
void WeightStore<T>::clear_gradients() {
  std::fill(begun_.begin(), begun_.end(), false);
  squares_.clear();
  if (splits_gradients())
    clear(kept_gradients(), buffers_.gradients.count);  // to which every micro batch adds
  else
    clear(kept_gradients(), 0, to_clear_.front());
}

template <class T>
void WeightStore<T>::finish_gradients(int tied_unit) {
  for (const TransferPtr& transfer : pending_) transfer->wait();
  pending_.clear();
  for (int i = 0; i < static_cast<int>(reductions_.size()); ++i) settle(i);
  if (tied_unit >= 0 && ranks_->embedding->size() > 1)
    ranks_->embedding->all_reduce(owned_gradients(tied_unit), share_at(tied_unit).size);
}

template <class T>
void WeightStore<T>::publish_weights() {
  for (GatherBuffer& buffer : gathers_) {
    if (buffer.pending) buffer.pending->wait();
    buffer = {};
  }
  if (stage_ == 0 || data_size_ == 1 || splits_weights()) return;
  std::vector<TransferPtr> transfers;
  for (int unit = 0; unit < table_.unit_count(); ++unit)
    transfers.push_back(
        ranks_->data->start_all_gather(comm_buffer(owned_weights(unit), share_at(unit).size),
                                       comm_buffer(kept_weights() + unit_at(unit).begin, unit_at(unit).size())));
  for (const TransferPtr& transfer : transfers) transfer->wait();
}

template class WeightStore<float>;
template class WeightStore<bf16>;
template class WeightStore<f16>;
template class WeightStore<double>;

}  // namespace tprimat::engine

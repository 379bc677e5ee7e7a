#include "train/stage.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr int k_backward_tag = 16384;  // tags of gradients, above those of activations

OpScope scope_of(OpPhase phase, int64_t micro) { return {phase, -1, static_cast<int32_t>(micro)}; }

}  // namespace

template <class T>
Stage<T>::Stage(const TrainSpec& spec, const RankPlace& place, const TrainingPlan& plan, ParameterTable& parameters)
    : spec_(spec),
      pipeline_rank_(place.pipeline),
      pipeline_size_(static_cast<int>(spec.parallel.pipeline)),
      elements_(plan.stream_gradients.front().count),
      schedule_(pipeline_schedule(spec.parallel, place.pipeline, spec.gradient_accumulation_steps())),
      gradients_(plan.stream_gradients),
      loss_(plan.loss) {
  const Plan layers{plan.shape, parameters};
  shared_ = std::make_unique<ChunkShared<T>>(spec.model, layers, plan.shared);
  for (const PlannedChunk& chunk : plan.chunks) add_chunk(chunk, layers);
}

template <class T>
void Stage<T>::add_chunk(const PlannedChunk& planned, const Plan& plan) {
  const ChunkShape& shape = planned.shape;
  const bool has_copy = spec_.model.tied_embeddings && pipeline_size_ > 1 && (shape.embeds || shape.classifies);
  if (has_copy) tied_unit_ = plan.parameters.unit_count();  // a chunk's embedding is its first unit
  const std::vector<int64_t> under_way = micro_batches_under_way(schedule_, spec_.parallel.virtual_pipeline);
  CHECK(under_way[chunks_.size()] == planned.banks);
  chunks_.push_back({ModelChunk<T>(spec_.model, plan, shape, planned.buffers), shape, planned.banks, planned.memory,
                     planned.bank_bytes, std::vector<TransferPtr>(static_cast<size_t>(planned.banks))});
}

template <class T>
void Stage<T>::attach(const Arena& arena, const Compute<T>& compute, const RankGroups& ranks, WeightHome<T>& home) {
  arena_ = &arena;
  compute_.emplace(compute);
  ranks_ = &ranks;
  home_ = &home;
  shared_->prepare(pass(chunks_.front(), 0));
}

template <class T>
Pass<T> Stage<T>::pass(const Chunk& chunk, int64_t micro) const {
  std::byte* const bank = arena_->at(chunk.memory) + static_cast<size_t>(micro % chunk.banks) * chunk.bank_bytes;
  return {compute_->device, compute_->ops, *arena_, bank, *ranks_, arena_->at(loss_), {}, clock_};
}

template <class T>
void Stage<T>::clear_loss() const {
  compute_->ops.clear(arena_->at(loss_), sizeof(double));
}

template <class T>
double Stage<T>::read_loss() const {
  double loss = 0;
  compute_->device.download(&loss, arena_->at(loss_), sizeof loss);
  return loss;
}

// With the chunk at `place` among all chunks of the model.
template <class T>
TransferPtr Stage<T>::start_exchange(bool receive, T* stream, int place, int tag) const {
  const int rank = place % pipeline_size_;
  const CommBuffer buffer = comm_buffer(stream, elements_);
  return receive ? ranks_->pipeline->start_receive(buffer, rank, tag) : ranks_->pipeline->start_send(buffer, rank, tag);
}

// "forward of micro-batch 2", with several chunks "forward of micro-batch 2, chunk 1".
template <class T>
std::string Stage<T>::name_range(const char* pass, int chunk, int64_t micro) const {
  if (clock_ == nullptr || !clock_->keeps_events()) return {};
  return fmt::format("{} of micro-batch {}{}", pass, micro,
                     chunks_.size() > 1 ? fmt::format(", chunk {}", chunk) : std::string());
}

template <class T>
void Stage<T>::forward(int index, int64_t micro, const BatchReader& batches, double gradient_scale) {
  Chunk& chunk = chunks_[static_cast<size_t>(index)];
  const OpRange range(clock_, name_range("forward", index, micro), scope_of(OpPhase::forward, micro));
  const Pass<T> run = pass(chunk, micro);
  const int place = place_of(index);
  TransferPtr& send = chunk.sends[static_cast<size_t>(micro % chunk.banks)];
  if (send) send->wait();  // of the micro batch that had this bank before
  if (T* const input = chunk.layers.received_input(run)) {
    const OpTimer timer(clock_, "pipeline exchange", {});
    start_exchange(true, input, place - 1, place)->wait();
  }
  const T* const output = chunk.layers.forward(run, *shared_, *home_, batches.micro_batch(micro), gradient_scale);
  if (output != nullptr) send = start_exchange(false, const_cast<T*>(output), place + 1, place + 1);
}

template <class T>
void Stage<T>::backward(int index, int64_t micro, const BatchReader& batches) {
  Chunk& chunk = chunks_[static_cast<size_t>(index)];
  const OpRange range(clock_, name_range("backward", index, micro), scope_of(OpPhase::backward, micro));
  const int place = place_of(index);
  TransferPtr& send = gradient_sends_[static_cast<size_t>(next_gradient_)];
  T* const gradient = arena_->as<T>(gradients_[static_cast<size_t>(next_gradient_)]);
  next_gradient_ = 1 - next_gradient_;
  if (send) send->wait();
  if (!chunk.shape.classifies) {
    const OpTimer timer(clock_, "pipeline exchange", {});
    start_exchange(true, gradient, place + 1, k_backward_tag + place)->wait();
  }
  chunk.layers.backward(pass(chunk, micro), *shared_, *home_, batches.micro_batch(micro), gradient);
  if (!chunk.shape.embeds) send = start_exchange(false, gradient, place - 1, k_backward_tag + place - 1);
}

template <class T>
bool Stage<T>::can_record() const {
  return compute_->accelerator != nullptr && ranks_->world->size() == 1 &&
         (clock_ == nullptr || clock_->allows_recording());
}

template <class T>
double Stage<T>::run(const BatchReader& batches, double gradient_scale, WeightStore<T>& store) {
  clear_loss();
  if (!ran_before_ || !can_record()) {
    ran_before_ = true;
    work(batches, gradient_scale, store);
    return read_loss();
  }
  if (!recorded_ || recorded_->gradient_scale != gradient_scale || recorded_->clock != clock_)
    record(batches, gradient_scale, store);
  recorded_->work->replay();
  if (clock_ != nullptr) clock_->note_replay();
  return read_loss();
}

template <class T>
void Stage<T>::record(const BatchReader& batches, double gradient_scale, WeightStore<T>& store) {
  recorded_.reset();  // before the events in it, and before another one takes memory
  if (clock_ != nullptr) clock_->begin_recording();
  recorded_ = {compute_->accelerator->record([&] { work(batches, gradient_scale, store); }), gradient_scale, clock_};
  if (clock_ != nullptr) clock_->end_recording();
}

template <class T>
void Stage<T>::work(const BatchReader& batches, double gradient_scale, WeightStore<T>& store) {
  {
    const OpRange range(clock_, "clearing of gradients", {.phase = OpPhase::optimizer});
    const OpTimer timer(clock_, "clearing gradients", {});
    store.clear_gradients();
  }
  for (const PipelineAction& action : schedule_) {
    const bool last = action.micro + 1 == batches.micro_batches();
    store.announce_last(last);
    if (action.kind == PipelineAction::Kind::forward)
      forward(action.chunk, action.micro, batches, gradient_scale);
    else
      backward(action.chunk, action.micro, batches);
  }
  for (Chunk& chunk : chunks_)
    for (TransferPtr& send : chunk.sends) send.reset();
  for (TransferPtr& send : gradient_sends_) send.reset();
}

template <class T>
void Stage<T>::evaluate(int index, int64_t micro, const BatchReader& batches) {
  const Chunk& chunk = chunks_[static_cast<size_t>(index)];
  const Pass<T> run = pass(chunk, 0);
  const int place = place_of(index);
  if (T* const input = chunk.layers.received_input(run)) start_exchange(true, input, place - 1, place)->wait();
  const T* const output = chunk.layers.evaluate(run, *shared_, *home_, batches.micro_batch(micro));
  if (output != nullptr) start_exchange(false, const_cast<T*>(output), place + 1, place + 1)->wait();
}

template <class T>
double Stage<T>::evaluate(const BatchReader& batches) {
  clear_loss();
  for (int64_t micro = 0; micro < batches.micro_batches(); ++micro)
    for (int chunk = 0; chunk < static_cast<int>(chunks_.size()); ++chunk) evaluate(chunk, micro, batches);
  return read_loss();
}

template <class T>
std::vector<double> Stage<T>::logits(const BatchReader& batches) {
  const Chunk& chunk = chunks_.front();
  const auto logits = chunk.layers.logits(pass(chunk, 0), *shared_, *home_, batches.micro_batch(0));
  return {logits.begin(), logits.end()};
}

template class Stage<float>;
template class Stage<bf16>;
template class Stage<f16>;
template class Stage<double>;

}  // namespace tprimat::engine

#include "memory/rank_shape.h"

#include "spec/pipeline_schedule.h"

namespace tprimat {

RowRange share_of(int64_t first, int64_t count, int rank, int size) {
  const int64_t begin = count * rank / size, end = count * (rank + 1) / size;
  return {first + begin, end - begin};
}

RankShape rank_shape(const TrainSpec& spec, const RankPlace& place, const TrainingDevice& device) {
  const ParallelSpec& layout = spec.parallel;
  return {{spec.micro_batch_size, spec.sequence_length, spec.sequence_length / layout.context},
          {place.tensor, static_cast<int>(layout.tensor), layout.sequence_parallel && layout.tensor > 1, place.context,
           static_cast<int>(layout.context)},
          spec.recompute,
          spec.precision == Precision::fp8,
          device.has_fp8_units,
          device.is_host};
}

LocalHeads::LocalHeads(const ModelSpec& model, const Sharing& sharing)
    : query(share_of(0, model.num_attention_heads, sharing.tensor_rank, sharing.tensor_size)),
      key_value(share_of(0, model.num_key_value_heads, sharing.tensor_rank, sharing.tensor_size)),
      shared_key_value(sharing.tensor_size > model.num_key_value_heads),
      head_dim(model.head_dim) {
  if (shared_key_value) key_value = {query.first * model.num_key_value_heads / model.num_attention_heads, 1};
}

RowRange local_inner(const ModelSpec& model, const Sharing& sharing) {
  return share_of(0, model.ffn_hidden_size, sharing.tensor_rank, sharing.tensor_size);
}

RowRange local_vocabulary(const ModelSpec& model, const Sharing& sharing) {
  return share_of(0, model.vocab_size, sharing.tensor_rank, sharing.tensor_size);
}

ChunkShape chunk_shape(const ModelSpec& model, const ParallelSpec& layout, int stage, int chunk) {
  const int64_t chunks = layout.pipeline * layout.virtual_pipeline, place = chunk * layout.pipeline + stage;
  const ChunkLayers layers = split_layers(model.num_layers, chunks, layout.ends_as_layers, place);
  return {layers.first, layers.count, place == 0, place == chunks - 1};
}

}  // namespace tprimat

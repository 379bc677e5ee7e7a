#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model_files/checkpoint_writer.h"
#include "model_files/whole_weights.h"
#include "parameters/parameters.h"
#include "spec/model_spec.h"
#include "text/json.h"
#include "unit/model_files/sample_models.h"

namespace tprimat::test {

using namespace engine;

// Rank `rank` of `ranks` holds this share of each of `sections` (rows that are cut alike, as queries, keys and values).
inline Shard row_shard(const NamedShape& whole, const std::vector<int64_t>& sections, int64_t rank, int64_t ranks) {
  Shard shard{whole.rows, whole.cols, {}, 0, whole.cols};
  int64_t first = 0;
  for (const int64_t rows : sections) {
    shard.rows.push_back({first + rows / ranks * rank, rows / ranks});
    first += rows;
  }
  return shard;
}

inline Shard col_shard(const NamedShape& whole, int64_t rank, int64_t ranks) {
  return {whole.rows, whole.cols, {{0, whole.rows}}, whole.cols / ranks * rank, whole.cols / ranks};
}

// The part of a weight that a tensor-parallel rank holds, cut as Megatron-LM does.
inline Parameter tensor_part(const ModelSpec& model, const NamedShape& whole, int64_t rank, int64_t ranks) {
  const auto names = [&](const std::string& part) { return whole.name.find(part) != std::string::npos; };
  const int64_t queries = model.num_attention_heads * model.head_dim, keys = model.num_key_value_heads * model.head_dim;
  Parameter parameter;
  parameter.name = whole.name;
  parameter.shard = Shard::whole(whole.rows, whole.cols);
  if (names(".qkv.")) parameter.shard = row_shard(whole, {queries, keys, keys}, rank, ranks);
  if (names(".gate_up."))
    parameter.shard = row_shard(whole, {model.ffn_hidden_size, model.ffn_hidden_size}, rank, ranks);
  if (names(".up.") || names("embedding") || names("head."))
    parameter.shard = row_shard(whole, {whole.rows}, rank, ranks);
  if (names(".out.weight") || names(".down.weight")) parameter.shard = col_shard(whole, rank, ranks);
  return parameter;
}

inline std::vector<float> part_of(const std::vector<float>& whole, const Parameter& parameter) {
  std::vector<float> values;
  for (int64_t i = 0; i < parameter.count(); ++i)
    values.push_back(whole[static_cast<size_t>(parameter.shard.whole_index(i))]);
  return values;
}

inline float state_value(float weight, StateKind kind) {
  return kind == StateKind::weights ? weight : kind == StateKind::first_moment ? 0.25f * weight : weight * weight;
}

inline std::vector<float> state_values(const NamedShape& shape, StateKind kind) {
  std::vector<float> values = sample_values(shape);
  for (float& value : values) value = state_value(value, kind);
  return values;
}

constexpr StateKind k_all_kinds[] = {StateKind::weights, StateKind::first_moment, StateKind::second_moment};

// A model over tensor × data ranks; the data ranks share each part of a weight evenly, as ZeRO does.
struct Layout {
  int64_t tensor = 1, data = 1;
  uint32_t ranks() const { return static_cast<uint32_t>(tensor * data); }
};

// Lets a writer hold what rank `rank` of the layout would save.
inline void add_rank(CheckpointWriter& writer, const ModelSpec& model, const Layout& layout, int64_t rank) {
  for (const NamedShape& whole : whole_weights(model))
    for (const StateKind kind : k_all_kinds) {
      const Parameter parameter = tensor_part(model, whole, rank % layout.tensor, layout.tensor);
      const std::vector<float> values = part_of(state_values(whole, kind), parameter);
      const int64_t share = rank / layout.tensor, count = parameter.count();
      const int64_t begin = count * share / layout.data, end = count * (share + 1) / layout.data;
      writer.add(kind, parameter, begin, end, values.data() + begin);
    }
}

// Writes one checkpoint with all its ranks.
inline void write_sample_checkpoint(const CheckpointTarget& target, const ModelSpec& model, const Layout& layout,
                                    const Json& state) {
  std::vector<std::unique_ptr<CheckpointWriter>> writers;
  for (uint32_t rank = 0; rank < layout.ranks(); ++rank) {
    CheckpointTarget of_rank = target;
    of_rank.rank = rank;
    of_rank.ranks = layout.ranks();
    writers.push_back(std::make_unique<CheckpointWriter>(of_rank));
    add_rank(*writers.back(), model, layout, rank);
    writers.back()->start(state);
  }
  for (const auto& writer : writers) writer->wait();
}

// One small weight, one rank: for tests that look at every byte or at many checkpoints.
inline Parameter small_parameter() {
  Parameter parameter;
  parameter.name = "final_norm.weight";
  parameter.shard = Shard::whole(5, 1);
  return parameter;
}

inline void write_small_checkpoint(const CheckpointTarget& target, float value) {
  CheckpointWriter writer(target);
  const std::vector<float> values(5, value);
  writer.add(StateKind::weights, small_parameter(), 0, 5, values.data());
  writer.start(Json{{"loss_scale", 4096.0}});
  writer.wait();
}

}  // namespace tprimat::test

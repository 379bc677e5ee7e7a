#include "model_files/whole_weights.h"

#include <fmt/format.h>

#include "base/check.h"

namespace tprimat::engine {
namespace {

class WeightList {
 public:
  explicit WeightList(const ModelSpec& model) : model_(model) {}

  void add(const std::string& name, int64_t rows, int64_t cols = 1) { weights_.push_back({name, rows, cols}); }

  void add_norm(const std::string& name) {
    add(name + ".weight", model_.hidden_size);
    if (model_.norm == NormKind::layer) add(name + ".bias", model_.hidden_size);
  }

  void add_linear(const std::string& name, int64_t outputs, int64_t inputs, bool bias) {
    add(name + ".weight", outputs, inputs);
    if (bias) add(name + ".bias", outputs);
  }

  void add_attention(const std::string& name) {
    const int64_t queries = model_.num_attention_heads * model_.head_dim;
    const int64_t keys = model_.num_key_value_heads * model_.head_dim;
    add_linear(name + ".qkv", queries + 2 * keys, model_.hidden_size, model_.qkv_bias || model_.linear_bias);
    if (model_.qk_norm) add(name + ".query_norm.weight", model_.head_dim);
    if (model_.qk_norm) add(name + ".key_norm.weight", model_.head_dim);
    add_linear(name + ".out", model_.hidden_size, queries, model_.linear_bias);
  }

  void add_mlp(const std::string& name) {
    const int64_t inner = model_.ffn_hidden_size;
    if (model_.mlp == MlpKind::swiglu)
      add_linear(name + ".gate_up", 2 * inner, model_.hidden_size, model_.linear_bias);
    else
      add_linear(name + ".up", inner, model_.hidden_size, model_.linear_bias);
    add_linear(name + ".down", model_.hidden_size, inner, model_.linear_bias);
  }

  std::vector<NamedShape> take() { return std::move(weights_); }

 private:
  const ModelSpec& model_;
  std::vector<NamedShape> weights_;
};

}  // namespace

std::vector<NamedShape> whole_weights(const ModelSpec& model) {
  CHECK(!model.experts);
  WeightList list(model);
  list.add("embedding.weight", model.vocab_size, model.hidden_size);
  if (model.position == PositionKind::learned)
    list.add("positions.weight", model.max_position_embeddings, model.hidden_size);
  for (int64_t layer = 0; layer < model.num_layers; ++layer) {
    const std::string block = fmt::format("layers.{}", layer);
    list.add_norm(block + ".attention_norm");
    list.add_attention(block + ".attention");
    list.add_norm(block + ".mlp_norm");
    list.add_mlp(block + ".mlp");
  }
  list.add_norm("final_norm");
  if (!model.tied_embeddings) list.add("head.weight", model.vocab_size, model.hidden_size);
  return list.take();
}

}  // namespace tprimat::engine

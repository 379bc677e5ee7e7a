#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "model_files/whole_weights.h"
#include "spec/model_spec.h"

namespace tprimat::test {

using namespace engine;

inline ModelSpec tiny_llama() {
  ModelSpec model;
  model.name = "llama";
  model.full_name = "tiny";
  model.num_layers = 2;
  model.hidden_size = 24;
  model.ffn_hidden_size = 40;
  model.num_attention_heads = 4;
  model.num_key_value_heads = 2;
  model.head_dim = 6;
  model.vocab_size = 31;
  model.max_position_embeddings = 64;
  model.rope_theta = 500000.0;
  return model;
}

inline ModelSpec tiny_qwen2() {
  ModelSpec model = tiny_llama();
  model.name = "qwen2";
  model.qkv_bias = true;
  model.tied_embeddings = true;
  model.norm_eps = 1e-6;
  return model;
}

inline ModelSpec tiny_qwen3() {
  ModelSpec model = tiny_llama();
  model.name = "qwen3";
  model.qk_norm = true;
  model.head_dim = 10;  // wider than hidden_size / heads
  return model;
}

inline ModelSpec tiny_mistral() {
  ModelSpec model = tiny_llama();
  model.name = "mistral";
  model.sliding_window = 17;
  return model;
}

inline ModelSpec tiny_gpt2() {
  ModelSpec model = tiny_llama();
  model.name = "gpt2";
  model.norm = NormKind::layer;
  model.mlp = MlpKind::gelu;
  model.position = PositionKind::learned;
  model.linear_bias = model.tied_embeddings = true;
  model.num_key_value_heads = 4;
  model.rope_theta = 10000.0;
  return model;
}

inline std::vector<ModelSpec> tiny_models() {
  return {tiny_llama(), tiny_qwen2(), tiny_qwen3(), tiny_mistral(), tiny_gpt2()};
}

// Different for every weight and place.
inline std::vector<float> sample_values(const NamedShape& shape) {
  double seed = 1;
  for (const char c : shape.name) seed = std::fmod(seed * 31 + c, 1009.0);
  std::vector<float> values(static_cast<size_t>(shape.count()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(seed + 0.7 * static_cast<double>(i)));
  return values;
}

inline std::vector<float> sample_weight(const ModelSpec& model, const std::string& name) {
  for (const NamedShape& shape : whole_weights(model))
    if (shape.name == name) return sample_values(shape);
  return {};
}

}  // namespace tprimat::test

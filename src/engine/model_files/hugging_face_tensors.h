#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hugging_face/model_config.h"
#include "model_files/whole_weights.h"

namespace tprimat::engine {

// A tensor of Hugging Face's models: some rows of a weight of ours.
struct TensorPart {
  std::string name;            // with its prefix: "model.layers.0.self_attn.q_proj.weight", "transformer.h.0.ln_1.bias"
  int64_t rows = 0, cols = 1;  // as in our weight
  bool is_vector = false;      // stored with one dimension
  bool transposed = false;     // stored as cols×rows: GPT-2's Conv1D layers have inputs×outputs
  int64_t count() const { return rows * cols; }
  std::vector<int64_t> stored_shape() const;
};

// The tensors whose rows, one after the other, are our weight.
std::vector<TensorPart> tensor_parts(const ModelSpec& model, HuggingFaceFamily family, const NamedShape& weight);

// The name without "model." or "transformer.", which files of the bare model do without.
std::string_view without_prefix(std::string_view tensor);

// Constants that files of older versions store with the weights: rotary frequencies, attention masks.
bool is_stored_constant(std::string_view tensor_without_prefix);

// target (cols×rows) = source (rows×cols) transposed.
void transpose_matrix(std::span<const float> source, int64_t rows, int64_t cols, std::span<float> target);

}  // namespace tprimat::engine

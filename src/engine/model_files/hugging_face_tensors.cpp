#include "model_files/hugging_face_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr std::string_view k_prefixes[] = {"model.", "transformer."};

// Of layers below "layers.N.", the others as they stand; without .weight or .bias.
struct TensorNames {
  std::string_view ours, theirs;
};
constexpr TensorNames k_llama_names[] = {{"embedding", "model.embed_tokens"},
                                         {"final_norm", "model.norm"},
                                         {"head", "lm_head"},
                                         {"attention_norm", "input_layernorm"},
                                         {"attention.query_norm", "self_attn.q_norm"},
                                         {"attention.key_norm", "self_attn.k_norm"},
                                         {"attention.out", "self_attn.o_proj"},
                                         {"mlp_norm", "post_attention_layernorm"},
                                         {"mlp.down", "mlp.down_proj"}};
constexpr TensorNames k_gpt2_names[] = {{"embedding", "transformer.wte"},
                                        {"positions", "transformer.wpe"},
                                        {"final_norm", "transformer.ln_f"},
                                        {"head", "lm_head"},
                                        {"attention_norm", "ln_1"},
                                        {"attention.qkv", "attn.c_attn"},
                                        {"attention.out", "attn.c_proj"},
                                        {"mlp_norm", "ln_2"},
                                        {"mlp.up", "mlp.c_fc"},
                                        {"mlp.down", "mlp.c_proj"}};

std::string_view find_name(std::span<const TensorNames> names, std::string_view ours) {
  for (const auto& [our_name, their_name] : names)
    if (our_name == ours) return their_name;
  CHECK(!"every weight has a counterpart");
}

// "layers.3.mlp.down.weight" as {"layers.3.", "mlp.down", ".weight"}
struct SplitName {
  std::string layer;  // its number; empty outside the layers
  std::string module, kind;
};

SplitName split_name(const std::string& name) {
  SplitName split;
  size_t begin = 0;
  if (name.starts_with("layers.")) {
    const size_t number = name.find('.') + 1;
    begin = name.find('.', number) + 1;
    split.layer = name.substr(number, begin - 1 - number);
  }
  const size_t end = name.rfind('.');
  split.module = name.substr(begin, end - begin);
  split.kind = name.substr(end);
  return split;
}

std::vector<TensorPart> llama_parts(const ModelSpec& model, const SplitName& name, const TensorPart& whole) {
  const std::string block = name.layer.empty() ? "" : fmt::format("model.layers.{}.", name.layer);
  const auto part = [&](std::string_view module, int64_t rows) {
    TensorPart each = whole;
    each.name = fmt::format("{}{}{}", block, module, name.kind);
    each.rows = rows;
    return each;
  };
  const int64_t queries = model.num_attention_heads * model.head_dim, keys = model.num_key_value_heads * model.head_dim;
  if (name.module == "attention.qkv")
    return {part("self_attn.q_proj", queries), part("self_attn.k_proj", keys), part("self_attn.v_proj", keys)};
  if (name.module == "mlp.gate_up")
    return {part("mlp.gate_proj", model.ffn_hidden_size), part("mlp.up_proj", model.ffn_hidden_size)};
  return {part(find_name(k_llama_names, name.module), whole.rows)};
}

std::vector<TensorPart> gpt2_parts(const SplitName& name, TensorPart whole) {
  const std::string block = name.layer.empty() ? "" : fmt::format("transformer.h.{}.", name.layer);
  whole.name = fmt::format("{}{}{}", block, find_name(k_gpt2_names, name.module), name.kind);
  whole.transposed = !name.layer.empty() && !whole.is_vector;
  return {whole};
}

}  // namespace

std::vector<int64_t> TensorPart::stored_shape() const {
  if (is_vector) return {rows};
  return transposed ? std::vector{cols, rows} : std::vector{rows, cols};
}

std::vector<TensorPart> tensor_parts(const ModelSpec& model, HuggingFaceFamily family, const NamedShape& weight) {
  const SplitName name = split_name(weight.name);
  const bool is_vector = name.kind == ".bias" || name.module.ends_with("norm");
  const TensorPart whole{weight.name, weight.rows, weight.cols, is_vector, false};
  return family == HuggingFaceFamily::gpt2 ? gpt2_parts(name, whole) : llama_parts(model, name, whole);
}

std::string_view without_prefix(std::string_view tensor) {
  for (const std::string_view prefix : k_prefixes)
    if (tensor.starts_with(prefix)) return tensor.substr(prefix.size());
  return tensor;
}

bool is_stored_constant(std::string_view tensor) {
  if (tensor.ends_with(".rotary_emb.inv_freq")) return true;
  return tensor.starts_with("h.") && (tensor.ends_with(".attn.bias") || tensor.ends_with(".attn.masked_bias"));
}

void transpose_matrix(std::span<const float> source, int64_t rows, int64_t cols, std::span<float> target) {
  constexpr int64_t k_tile = 32;  // tiles that stay in the cache
  for (int64_t row = 0; row < rows; row += k_tile)
    for (int64_t col = 0; col < cols; col += k_tile)
      for (int64_t r = row; r < std::min(row + k_tile, rows); ++r)
        for (int64_t c = col; c < std::min(col + k_tile, cols); ++c)
          target[static_cast<size_t>(c * rows + r)] = source[static_cast<size_t>(r * cols + c)];
}

}  // namespace tprimat::engine

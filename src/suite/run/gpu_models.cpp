#include "run/gpu_models.h"

#include <fmt/format.h>

#include "base/check.h"
#include "spec/model_catalogue.h"

namespace tprimat::suite {
namespace {

constexpr int64_t k_head_dim = 64, k_longest = 4096;  // tokens

// A shape of our own, for GPUs whose memory holds no public model.
struct SmallShape {
  const char *name, *full_name;
  int64_t layers, hidden, ffn, heads, kv_heads, vocab;
};

GpuModel public_model(const char* name) {
  auto spec = find_model(name);
  CHECK(spec);
  return {*spec, fmt::format("{{name: \"{}\"}}", name)};
}

ModelSpec sized_model(const SmallShape& shape) {
  ModelSpec spec;
  spec.name = shape.name, spec.full_name = shape.full_name;
  spec.num_layers = shape.layers, spec.hidden_size = shape.hidden, spec.ffn_hidden_size = shape.ffn;
  spec.num_attention_heads = shape.heads, spec.num_key_value_heads = shape.kv_heads, spec.head_dim = k_head_dim;
  spec.vocab_size = shape.vocab, spec.max_position_embeddings = k_longest;
  return spec;
}

GpuModel small_model(const SmallShape& shape, const std::string& kind, ModelSpec spec) {
  return {std::move(spec),
          fmt::format("{{name: \"{}\", full_name: \"{}\", num_layers: {}, hidden_size: {}, ffn_hidden_size: {}, "
                      "num_attention_heads: {}, num_key_value_heads: {}, head_dim: {}, vocab_size: {}, "
                      "max_position_embeddings: {}, {}}}",
                      shape.name, shape.full_name, shape.layers, shape.hidden, shape.ffn, shape.heads, shape.kv_heads,
                      k_head_dim, shape.vocab, k_longest, kind)};
}

GpuModel small_llama(const SmallShape& shape) {
  ModelSpec spec = sized_model(shape);
  spec.rope_theta = 500000.0, spec.norm_eps = 1e-5;
  return small_model(shape, "tied_embeddings: false, rope_theta: 500000.0, norm_eps: 1.0e-5", std::move(spec));
}

GpuModel small_qwen(const SmallShape& shape) {
  ModelSpec spec = sized_model(shape);
  spec.tied_embeddings = spec.qkv_bias = true;
  spec.rope_theta = 1e6, spec.norm_eps = 1e-6;
  return small_model(shape, "tied_embeddings: true, qkv_bias: true, rope_theta: 1.0e6, norm_eps: 1.0e-6",
                     std::move(spec));
}

}  // namespace

const std::vector<GpuModelFamily>& gpu_model_families() {
  static const std::vector<GpuModelFamily> families = {
      {"llama",
       {public_model("llama3.1_8b"), public_model("llama3.2_3b"), public_model("llama3.2_1b"),
        small_llama({"llama_338m", "Llama-shaped 338M", 24, 1024, 2816, 16, 4, 32768}),
        small_llama({"llama_126m", "Llama-shaped 126M", 12, 768, 2048, 12, 4, 32768}),
        small_llama({"llama_10m", "Llama-shaped 10M", 8, 256, 768, 4, 2, 8192})}},
      {"qwen",
       {public_model("qwen2.5_7b"), public_model("qwen2.5_1.5b"), public_model("qwen2.5_0.5b"),
        small_qwen({"qwen_101m", "Qwen-shaped 101M", 12, 768, 2048, 12, 4, 32768}),
        small_qwen({"qwen_10m", "Qwen-shaped 10M", 9, 256, 896, 4, 2, 8192})}}};
  return families;
}

}  // namespace tprimat::suite

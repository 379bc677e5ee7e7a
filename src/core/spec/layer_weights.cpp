#include "spec/layer_weights.h"

namespace tprimat {
namespace {

int64_t num_inner_matrices(const ModelSpec& model) { return model.mlp == MlpKind::swiglu ? 2 : 1; }

int64_t mlp_weights(const ModelSpec& model, int64_t input, int64_t inner) {
  return (num_inner_matrices(model) + 1) * input * inner;
}

int64_t mlp_biases(const ModelSpec& model, int64_t output, int64_t inner) {
  return model.linear_bias && inner > 0 ? num_inner_matrices(model) * inner + output : 0;
}

void add_attention(LayerWeights& layer, const ModelSpec& model) {
  const int64_t query = model.num_attention_heads * model.head_dim, key = model.num_key_value_heads * model.head_dim;
  layer.attention = 2 * model.hidden_size * (query + key);  // q and o; k and v
  layer.attention_core = 2 * query;
  if (model.qkv_bias || model.linear_bias) layer.attention_extras += query + 2 * key;
  if (model.linear_bias) layer.attention_extras += model.hidden_size;
  if (model.qk_norm) layer.attention_extras += 2 * model.head_dim;
}

// arXiv 2405.04434, section 2.1.
void add_latent_attention(LayerWeights& layer, const ModelSpec& model, const LatentAttention& latent) {
  const int64_t heads = model.num_attention_heads, query = heads * (model.head_dim + latent.rope_head_dim);
  const int64_t values = heads * latent.value_head_dim;
  layer.attention = latent.query_rank > 0 ? latent.query_rank * (model.hidden_size + query) : model.hidden_size * query;
  layer.attention += model.hidden_size * (latent.key_value_rank + latent.rope_head_dim) +
                     latent.key_value_rank * (heads * model.head_dim + values) + values * model.hidden_size;
  layer.attention_extras = latent.query_rank + latent.key_value_rank;  // norms
  layer.attention_core = query + values;
}

void add_mixer(LayerWeights& layer, const ModelSpec& model) {
  const MambaMixers& mamba = *model.mamba;
  const int64_t streams = 2 * mamba.groups * mamba.state;  // B and C
  layer.mixer = model.hidden_size * (2 * mamba.inner_width + streams + mamba.heads + mamba.inner_width);
  // A convolution over x, B and C with biases, a decay, a step and a skip per head, and the weights of a norm.
  layer.mixer_extras = (mamba.convolution + 1) * (mamba.inner_width + streams) + 3 * mamba.heads + mamba.inner_width;
}

void add_experts(LayerWeights& layer, const ModelSpec& model) {
  const Experts& experts = *model.experts;
  const int64_t hidden = model.hidden_size, width = experts.latent_size.value_or(hidden);
  layer.expert = mlp_weights(model, width, experts.ffn_hidden_size);
  layer.expert_extras = mlp_biases(model, width, experts.ffn_hidden_size);
  layer.router = experts.count * hidden;
  layer.router_extras = model.linear_bias ? experts.count : 0;
  layer.shared = mlp_weights(model, hidden, experts.shared_ffn_hidden_size) + (experts.shared_gate ? hidden : 0) +
                 (experts.latent_size ? 2 * hidden * width : 0);
  layer.shared_extras = mlp_biases(model, hidden, experts.shared_ffn_hidden_size);
}

}  // namespace

LayerWeights weights_of_layer(const ModelSpec& model) {
  LayerWeights layer;
  if (model.latent_attention)
    add_latent_attention(layer, model, *model.latent_attention);
  else
    add_attention(layer, model);
  if (model.attention_sinks.value_or(false)) layer.attention_extras += model.num_attention_heads;
  if (model.mamba) add_mixer(layer, model);
  layer.mlp = mlp_weights(model, model.hidden_size, model.ffn_hidden_size);
  layer.mlp_extras = mlp_biases(model, model.hidden_size, model.ffn_hidden_size);
  if (model.experts) add_experts(layer, model);
  // A layer of a hybrid is one part with one norm before it, that of a Transformer two.
  layer.norms = (model.mamba ? 1 : 2) * (model.norm == NormKind::layer ? 2 : 1) * model.hidden_size;
  return layer;
}

namespace {

// Each layer_interval-th layer after the dense ones has experts. A hybrid's block has them wherever it has any.
bool ends_with_experts(const ModelSpec& model) {
  if (!model.experts || model.mamba) return model.experts.has_value();
  const int64_t after = model.num_layers - model.experts->first_dense_layers;
  return after > 0 && model.experts->layer_interval > 0 && after % model.experts->layer_interval == 0;
}

}  // namespace

PredictionBlock prediction_block(const ModelSpec& model) {
  const LayerWeights layer = weights_of_layer(model);
  const int64_t joined = 2 * model.hidden_size * model.hidden_size;
  const int64_t norms = 5 * model.hidden_size;  // of the block, of the two streams, and the last
  int64_t all = layer.mlp + layer.mlp_extras, passed = all, weights = layer.mlp;
  if (ends_with_experts(model)) {
    const Experts& experts = *model.experts;
    const int64_t common = layer.shared + layer.shared_extras + layer.router + layer.router_extras;
    all = experts.count * (layer.expert + layer.expert_extras) + common;
    passed = experts.per_token * (layer.expert + layer.expert_extras) + common;
    weights = experts.per_token * layer.expert + layer.shared + layer.router;
  }
  const int64_t attention = layer.attention + layer.attention_extras;
  return {attention + all + joined + norms, attention + passed + joined + norms, layer.attention + weights + joined};
}

}  // namespace tprimat

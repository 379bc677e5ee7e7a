#include "probe/model_products.h"

#include <algorithm>

#include "base/check.h"

namespace tprimat::engine {
namespace {

struct LinearLayer {
  const char* name;
  int64_t inputs, outputs, count;
};
using LinearLayers = std::vector<LinearLayer>;

int64_t predictions(const ModelSpec& model) { return model.prediction_layers.value_or(0); }
int64_t expert_layers(const ModelSpec& model) { return model.experts ? model.expert_layers() + predictions(model) : 0; }
int64_t branches(const ModelSpec& model) { return model.mlp == MlpKind::swiglu ? 2 : 1; }

void add_latent_attention(LinearLayers& layers, const ModelSpec& model, int64_t count) {
  const LatentAttention& latent = *model.latent_attention;
  const int64_t hidden = model.hidden_size, heads = model.num_attention_heads, rank = latent.key_value_rank;
  const int64_t queries = heads * (model.head_dim + latent.rope_head_dim);
  if (latent.query_rank > 0) {
    layers.push_back({"q_down", hidden, latent.query_rank, count});
    layers.push_back({"q_up", latent.query_rank, queries, count});
  } else {
    layers.push_back({"q", hidden, queries, count});
  }
  layers.push_back({"kv_down", hidden, rank + latent.rope_head_dim, count});
  layers.push_back({"kv_up", rank, heads * (model.head_dim + latent.value_head_dim), count});
  layers.push_back({"out", heads * latent.value_head_dim, hidden, count});
}

void add_attention(LinearLayers& layers, const ModelSpec& model) {
  const int64_t count = model.attention_layers() + predictions(model);
  if (model.latent_attention) return add_latent_attention(layers, model, count);
  const int64_t heads = model.num_attention_heads + 2 * model.num_key_value_heads;
  layers.push_back({"qkv", model.hidden_size, heads * model.head_dim, count});
  layers.push_back({"out", model.num_attention_heads * model.head_dim, model.hidden_size, count});
}

void add_mixers(LinearLayers& layers, const ModelSpec& model) {
  if (!model.mamba) return;
  const MambaMixers& mamba = *model.mamba;
  const int64_t outputs = 2 * mamba.inner_width + 2 * mamba.groups * mamba.state + mamba.heads;
  layers.push_back({"mixer_in", model.hidden_size, outputs, mamba.layers});
  layers.push_back({"mixer_out", mamba.inner_width, model.hidden_size, mamba.layers});
}

void add_mlps(LinearLayers& layers, const ModelSpec& model) {
  const int64_t hidden = model.hidden_size, sparse = expert_layers(model);
  const int64_t dense = model.dense_layers() + (model.experts ? 0 : predictions(model));
  layers.push_back({"up", hidden, branches(model) * model.ffn_hidden_size, dense});
  layers.push_back({"down", model.ffn_hidden_size, hidden, dense});
  if (!model.experts) return;
  const int64_t shared = model.experts->shared_ffn_hidden_size, latent = model.experts->latent_size.value_or(0);
  layers.push_back({"shared_up", hidden, branches(model) * shared, sparse});
  layers.push_back({"shared_down", shared, hidden, sparse});
  layers.push_back({"latent_in", hidden, latent, sparse});
  layers.push_back({"latent_out", latent, hidden, sparse});
}

LinearLayers linear_layers(const ModelSpec& model) {
  const int64_t hidden = model.hidden_size, further = predictions(model);
  LinearLayers layers;
  add_attention(layers, model);
  add_mixers(layers, model);
  add_mlps(layers, model);
  layers.push_back({"join", 2 * hidden, hidden, further});
  layers.push_back({"head", hidden, model.vocab_size, 1 + further});
  std::erase_if(layers, [](const LinearLayer& each) { return each.inputs * each.outputs * each.count == 0; });
  return layers;
}

double flops_per_row(int64_t inputs, int64_t outputs) {
  return 2.0 * static_cast<double>(inputs) * static_cast<double>(outputs);
}

int64_t limit_tokens(const LinearLayer& layer, int64_t tokens, double most_flops) {
  const auto most =
      static_cast<int64_t>(most_flops / flops_per_row(layer.inputs, layer.outputs)) / k_fewest_tokens * k_fewest_tokens;
  return std::min(tokens, std::max(most, k_fewest_tokens));
}

ProductShape shape_of(const GroupedShape& group, int64_t tokens) {
  using enum ProductPass;
  switch (group.pass) {
    case forward: return {group.name, forward, tokens, group.outputs, group.inputs};
    case dgrad: return {group.name, dgrad, tokens, group.inputs, group.outputs};
    case wgrad: return {group.name, wgrad, group.inputs, group.outputs, tokens};
  }
  CHECK(!"a pass");
}

constexpr int64_t k_token_step = 16;

void limit_group(GroupedShape& group, const GroupLimits& limits) {
  constexpr int64_t k_fewest_experts = 2;
  const auto rows = static_cast<int64_t>(limits.flops / flops_per_row(group.inputs, group.outputs));
  const int64_t most = std::min(rows / group.tokens, limits.weights / (group.inputs * group.outputs));
  group.experts = std::min(group.experts, std::max(most, k_fewest_experts));
  const int64_t tokens = std::max(rows / group.experts, k_fewest_tokens) / k_token_step * k_token_step;
  group.tokens = std::min(group.tokens, tokens);
}

}  // namespace

std::vector<ModelProduct> model_products(const ModelSpec& model, int64_t tokens, double most_flops) {
  CHECK(tokens > 0);
  std::vector<ModelProduct> products;
  for (const LinearLayer& layer : linear_layers(model)) {
    const int64_t rows = limit_tokens(layer, tokens, most_flops);
    using enum ProductPass;
    products.push_back({{layer.name, forward, rows, layer.outputs, layer.inputs}, layer.count});
    products.push_back({{layer.name, dgrad, rows, layer.inputs, layer.outputs}, layer.count});
    products.push_back({{layer.name, wgrad, layer.inputs, layer.outputs, rows}, layer.count});
  }
  return products;
}

// The sum up to each expert is rounded, so that no token is lost.
std::vector<int64_t> expert_tokens(ExpertLoad load, int64_t experts, int64_t tokens) {
  std::vector<int64_t> each(static_cast<size_t>(experts), tokens);
  if (load == ExpertLoad::even) return each;
  const int64_t step = tokens % k_token_step == 0 ? k_token_step : 1, steps = tokens / step;
  int64_t before = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    const int64_t until = steps * (expert + 1) * (expert + 2) / (experts + 1);
    each[static_cast<size_t>(expert)] = (until - before) * step;
    before = until;
  }
  return each;
}

std::vector<ProductShape> GroupedShape::products(ExpertLoad load) const {
  std::vector<ProductShape> shapes;
  for (const int64_t each : expert_tokens(load, experts, tokens))
    if (each > 0) shapes.push_back(shape_of(*this, each));
  return shapes;
}

ProductShape GroupedShape::plain() const { return shape_of(*this, experts * tokens); }

std::vector<ModelGroup> expert_products(const ModelSpec& model, int64_t tokens, const GroupLimits& limits) {
  CHECK(tokens > 0);
  if (!model.experts) return {};
  const Experts& experts = *model.experts;
  const int64_t width = experts.latent_size.value_or(model.hidden_size), inner = experts.ffn_hidden_size;
  const int64_t rows = tokens * experts.per_token, mean = std::max<int64_t>(1, rows / experts.count);
  std::vector<ModelGroup> groups;
  for (const LinearLayer& layer : {LinearLayer{"expert_up", width, branches(model) * inner, expert_layers(model)},
                                   LinearLayer{"expert_down", inner, width, expert_layers(model)}}) {
    const double flops = flops_per_row(layer.inputs, layer.outputs) * static_cast<double>(rows * layer.count);
    for (const ProductPass pass : {ProductPass::forward, ProductPass::dgrad, ProductPass::wgrad}) {
      GroupedShape shape{layer.name, pass, experts.count, mean, layer.inputs, layer.outputs};
      limit_group(shape, limits);
      groups.push_back({shape, flops});
    }
  }
  return groups;
}

}  // namespace tprimat::engine

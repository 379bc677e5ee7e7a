#include "probe/model_products.h"

#include <algorithm>

#include "base/check.h"

namespace tprimat::engine {
namespace {

struct LinearLayer {
  const char* name;
  int64_t inputs, outputs, count;
};

std::vector<LinearLayer> linear_layers(const ModelSpec& model) {
  const int64_t heads = model.num_attention_heads + 2 * model.num_key_value_heads;
  const int64_t branches = model.mlp == MlpKind::swiglu ? 2 : 1;
  const int64_t experts = model.num_experts ? model.experts_per_token.value_or(1) : 1;
  return {{"qkv", model.hidden_size, heads * model.head_dim, model.num_layers},
          {"out", model.num_attention_heads * model.head_dim, model.hidden_size, model.num_layers},
          {"up", model.hidden_size, branches * model.ffn_hidden_size, model.num_layers * experts},
          {"down", model.ffn_hidden_size, model.hidden_size, model.num_layers * experts},
          {"head", model.hidden_size, model.vocab_size, 1}};
}

int64_t limit_tokens(const LinearLayer& layer, int64_t tokens, double most_flops) {
  const double flops_per_token = 2.0 * static_cast<double>(layer.inputs) * static_cast<double>(layer.outputs);
  const auto most = static_cast<int64_t>(most_flops / flops_per_token) / k_fewest_tokens * k_fewest_tokens;
  return std::min(tokens, std::max(most, k_fewest_tokens));
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

std::optional<ModelRate> measure_model_products(const ModelSpec& model, int64_t tokens, ProductFormat format,
                                                int threads) {
  const std::vector<ModelProduct> products = model_products(model, tokens);
  std::vector<ProductShape> shapes;
  for (const ModelProduct& product : products) shapes.push_back(product.shape);
  auto measured = measure_products(shapes, format, threads);
  if (!measured) return std::nullopt;
  // Per token of a step every product does the same work as its forward, whatever number of rows was measured.
  double work = 0, time = 0;
  for (size_t i = 0; i < products.size(); ++i) {
    const auto& shape = products[i].shape;
    const int64_t rows = shape.pass == ProductPass::wgrad ? shape.k : shape.m;
    const double flops = shape.flops() / static_cast<double>(rows) * static_cast<double>(products[i].count);
    work += flops;
    time += flops / measured->shapes[i].flops_per_second;
  }
  return ModelRate{model.name, tokens, std::move(*measured), work / time};
}

}  // namespace tprimat::engine

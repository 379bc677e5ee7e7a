#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/product.h"
#include "result/gpu_probe_report.h"
#include "spec/model_spec.h"

namespace tprimat::engine {

// The matrix products of a model's linear layers on one device over `tokens` tokens (MBS·SL), each forward, dgrad and
// wgrad:
//   attention       qkv (one product), out; latent: q_down, q_up (or q), kv_down, kv_up, out
//   MLPs            up (SwiGLU: gate and up in one), down; those that all tokens pass beside experts: shared_up,
//   shared_down a hybrid's      mixer_in, mixer_out around experts  latent_in, latent_out where they work at another
//   width the ends        head; join of each layer that predicts further tokens, which is one more layer and reads the
//   head
// Attention's own products and the router's narrow one are not among them; those of routed experts are
// expert_products(). A product of more than `most_flops` is measured over fewer tokens, at least k_fewest_tokens.
inline constexpr double k_max_product_flops = 4e10;
inline constexpr int64_t k_fewest_tokens = 256;

struct ModelProduct {
  ProductShape shape;
  int64_t count = 1;  // in one pass over a micro-batch: the model's layers, or 1 for the head
};
std::vector<ModelProduct> model_products(const ModelSpec& model, int64_t tokens,
                                         double most_flops = k_max_product_flops);

// Tokens of each expert, whose mean is `tokens`. Where that is a multiple of 16, as 8-bit formats need it, so are they.
std::vector<int64_t> expert_tokens(ExpertLoad load, int64_t experts, int64_t tokens);

// The same pass of the same layer for several experts, which have weights of their own.
struct GroupedShape {
  std::string name;  // "expert_up", "expert_down"
  ProductPass pass = ProductPass::forward;
  int64_t experts = 0;
  int64_t tokens = 0;  // of an expert, on average
  int64_t inputs = 0, outputs = 0;

  std::vector<ProductShape> products(ExpertLoad load) const;  // one for each expert that has tokens
  ProductShape plain() const;                                 // of all their tokens, with one weight
  double flops() const { return plain().flops(); }
};

// Of a group that is measured. A larger one is measured with fewer experts, at least two, then with fewer tokens for
// each, at least k_fewest_tokens.
struct GroupLimits {
  double flops = k_max_product_flops;
  int64_t weights = int64_t{1} << 28;  // of all experts
};

struct ModelGroup {
  GroupedShape shape;
  double step_flops = 0;  // of one pass of a micro-batch through all layers with experts
};
// Of a sparse model's routed experts: all of a layer on one device, over tokens·per_token rows. None for others.
std::vector<ModelGroup> expert_products(const ModelSpec& model, int64_t tokens, const GroupLimits& limits = {});

}  // namespace tprimat::engine

#pragma once

#include <string>

#include "nn/linear.h"
#include "ops/attention.h"
#include "ops/rope.h"
#include "spec/model_spec.h"

namespace tprimat {

// Buffers that all layers share, because only one layer works at a time.
template <class T>
struct AttentionShared {
  AttentionShared(const ModelSpec& model, const Plan& plan);
  RopeTable<Accum<T>> rope(const Pass<T>& pass) const { return {pass.arena.at(cosine), pass.arena.at(sine)}; }

  Slot<Accum<T>> cosine, sine;  // filled once by Model
  Slot<T> dqkv, dcontext;
};

// Grouped-query attention with rotary positions: qkv product, RoPE, causal attention, output product.
template <class T>
class Attention {
 public:
  Attention(const ModelSpec& model, const Plan& plan, const std::string& name);

  // x, y: tokens×hidden.
  void forward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, T* y) const;
  void backward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, const T* dy, T* dx) const;

 private:
  AttentionShape shape_;
  RopeShape rope_;
  Linear<T> qkv_;
  Linear<T> out_;
  Slot<T> qkv_values_, context_;
  Slot<Accum<T>> logsumexp_;
};

// Standard deviation of initial weights: 0.02, and for products that feed the residual stream 0.02/√(2·layers), as in
// GPT-2 and Megatron-LM.
inline constexpr double k_init_stddev = 0.02;
double residual_init_stddev(const ModelSpec& model);

}  // namespace tprimat

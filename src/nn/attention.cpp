#include "nn/attention.h"

#include <cmath>

namespace tprimat {
namespace {

AttentionShape attention_shape(const ModelSpec& model, const BatchShape& batch) {
  return {batch.sequences,           batch.sequence_length, model.num_attention_heads,
          model.num_key_value_heads, model.head_dim,        model.sliding_window.value_or(0)};
}

RopeShape rope_shape(const AttentionShape& s) {
  return {s.batch, s.sequence, s.heads + s.kv_heads, s.head_dim, s.row_width()};
}

}  // namespace

double residual_init_stddev(const ModelSpec& model) {
  return k_init_stddev / std::sqrt(2.0 * static_cast<double>(model.num_layers));
}

template <class T>
AttentionShared<T>::AttentionShared(const ModelSpec& model, const Plan& plan) {
  const AttentionShape shape = attention_shape(model, plan.batch);
  const int64_t angles = plan.batch.sequence_length * model.head_dim / 2;
  cosine = plan.arena.reserve<Accum<T>>("activations", angles);
  sine = plan.arena.reserve<Accum<T>>("activations", angles);
  dqkv = plan.arena.reserve<T>("workspace", plan.batch.tokens() * shape.row_width());
  dcontext = plan.arena.reserve<T>("workspace", plan.batch.tokens() * shape.heads * shape.head_dim);
}

template <class T>
Attention<T>::Attention(const ModelSpec& model, const Plan& plan, const std::string& name)
    : shape_(attention_shape(model, plan.batch)),
      rope_(rope_shape(shape_)),
      qkv_(plan, name + ".qkv", {model.hidden_size, shape_.row_width(), model.qkv_bias, k_init_stddev}),
      out_(plan, name + ".out",
           {shape_.heads * shape_.head_dim, model.hidden_size, false, residual_init_stddev(model)}),
      qkv_values_(plan.arena.reserve<T>("activations", plan.batch.tokens() * shape_.row_width())),
      context_(plan.arena.reserve<T>("activations", plan.batch.tokens() * shape_.heads * shape_.head_dim)),
      logsumexp_(plan.arena.reserve<Accum<T>>("activations", plan.batch.tokens() * shape_.heads)) {}

template <class T>
void Attention<T>::forward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, T* y) const {
  const int64_t tokens = shape_.batch * shape_.sequence;
  T* const qkv = pass.arena.at(qkv_values_);
  qkv_.forward(pass, tokens, x, qkv);
  rope_in_place<T>(rope_, shared.rope(pass), +1, qkv);
  attention_forward<T>(shape_, qkv, pass.arena.at(context_), pass.arena.at(logsumexp_));
  out_.forward(pass, tokens, pass.arena.at(context_), y);
}

template <class T>
void Attention<T>::backward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, const T* dy,
                            T* dx) const {
  const int64_t tokens = shape_.batch * shape_.sequence;
  T* const dcontext = pass.arena.at(shared.dcontext);
  T* const dqkv = pass.arena.at(shared.dqkv);
  out_.backward(pass, tokens, pass.arena.at(context_), dy, dcontext);
  attention_backward<T>(
      shape_, {pass.arena.at(qkv_values_), pass.arena.at(context_), pass.arena.at(logsumexp_), dcontext, dqkv});
  rope_in_place<T>(rope_, shared.rope(pass), -1, dqkv);
  qkv_.backward(pass, tokens, x, dqkv, dx);
}

template struct AttentionShared<float>;
template struct AttentionShared<bf16>;
template struct AttentionShared<double>;
template class Attention<float>;
template class Attention<bf16>;
template class Attention<double>;

}  // namespace tprimat

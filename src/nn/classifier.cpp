#include "nn/classifier.h"

#include <algorithm>
#include <numeric>

#include "ops/cross_entropy.h"
#include "ops/matmul.h"

namespace tprimat {
namespace {

// The largest divisor of `tokens` whose logits fit the budget, so that all chunks have the same shape.
int64_t chunk_rows(int64_t tokens, int64_t vocab) {
  constexpr int64_t k_logits = int64_t{48}
                               << 20;  // elements; larger chunks make the weight gradient's product more efficient
  int64_t rows = std::clamp<int64_t>(k_logits / vocab, 1, tokens);
  while (tokens % rows != 0) --rows;
  return rows;
}

}  // namespace

template <class T>
Classifier<T>::Classifier(const ModelSpec& model, const Plan& plan, int64_t weight)
    : tokens_(plan.batch.tokens()),
      hidden_(model.hidden_size),
      vocab_(model.vocab_size),
      chunk_(chunk_rows(tokens_, vocab_)),
      weight_(weight),
      logits_(plan.arena.reserve<Accum<T>>("logits", chunk_ * vocab_)),
      losses_(plan.arena.reserve<Accum<T>>("logits", tokens_)) {
  if constexpr (!std::is_same_v<T, Accum<T>>) dlogits_ = plan.arena.reserve<T>("logits", chunk_ * vocab_);
}

template <class T>
double Classifier<T>::visit_chunk(const Pass<T>& pass, const T* x, const int32_t* targets, double gradient_scale,
                                  T* dx) const {
  Accum<T>* const logits = pass.arena.at(logits_);
  Accum<T>* const losses = pass.arena.at(losses_);
  T* dlogits;
  if constexpr (std::is_same_v<T, Accum<T>>)
    dlogits = logits;
  else
    dlogits = pass.arena.at(dlogits_);

  const auto weight = matrix(pass.weights + weight_, vocab_, hidden_);
  const auto inputs = matrix(x, chunk_, hidden_);
  const auto gradient = matrix(static_cast<const T*>(dlogits), chunk_, vocab_);
  matmul<T, Accum<T>>(inputs, transposed(weight), matrix(logits, chunk_, vocab_));
  cross_entropy<T>({chunk_, vocab_}, {logits, targets, gradient_scale, losses, dlogits});
  matmul<T, T>(gradient, weight, matrix(dx, chunk_, hidden_));
  matmul<T, Accum<T>>(transposed(gradient), inputs, matrix(pass.gradients + weight_, vocab_, hidden_), true);
  return std::accumulate(losses, losses + chunk_, 0.0);
}

template <class T>
double Classifier<T>::forward_backward(const Pass<T>& pass, const T* x, const int32_t* targets, double gradient_scale,
                                       T* dx) const {
  double loss = 0;
  for (int64_t row = 0; row < tokens_; row += chunk_)
    loss += visit_chunk(pass, x + row * hidden_, targets + row, gradient_scale, dx + row * hidden_);
  return loss;
}

template class Classifier<float>;
template class Classifier<bf16>;
template class Classifier<double>;

}  // namespace tprimat

#include "nn/classifier.h"

#include <algorithm>

namespace tprimat {
namespace {

// The largest divisor of `tokens` whose logits fit the budget, so that all chunks have the same shape.
int64_t chunk_rows(int64_t tokens, int64_t vocab, int64_t most_logits) {
  int64_t rows = std::clamp<int64_t>(most_logits / vocab, 1, tokens);
  while (tokens % rows != 0) --rows;
  return rows;
}

// Rows of logits, and the gradients that lie over them, begin at multiples of 256 bytes whatever the vocabulary: the
// most that matrix libraries ask for, and whole cache lines. GPT-2's 50257 would else leave all but every fourth row
// off 16 bytes, which is what GPUs load at a time.
int64_t logit_stride(int64_t vocabulary) {
  constexpr int64_t k_aligned = 64;  // elements
  return (vocabulary + k_aligned - 1) / k_aligned * k_aligned;
}

}  // namespace

template <class T>
Classifier<T>::Classifier(const ModelSpec& model, const Plan& plan, int64_t weight)
    : tokens_(plan.tokens()),
      hidden_(model.hidden_size),
      chunk_(chunk_rows(tokens_, model.vocab_size, plan.most_logits)),
      weight_(weight),
      vocabulary_(local_vocabulary(model, plan.sharing)),
      tensor_size_(plan.sharing.tensor_size),
      stride_(logit_stride(vocabulary_.count)),
      logits_(plan.workspace.reserve<Accum<T>>("logits", chunk_ * stride_)),
      losses_(plan.workspace.reserve<Accum<T>>("logits", chunk_)) {
  if (tensor_size_ == 1) return;
  own_targets_ = plan.workspace.reserve<int32_t>("logits", chunk_);
  largest_ = plan.workspace.reserve<Accum<T>>("logits", chunk_);
  whole_largest_ = plan.workspace.reserve<Accum<T>>("logits", chunk_);
  sums_ = plan.workspace.reserve<Accum<T>>("logits", 2 * chunk_);
}

template <class T>
MatrixView<Accum<T>> Classifier<T>::chunk_logits(const Pass<T>& pass) const {
  return {pass.at(logits_), chunk_, vocabulary_.count, stride_, 1};
}

// Each row of gradients lies at the beginning of the row of logits that it is made from.
template <class T>
MatrixView<T> Classifier<T>::gradient_of_logits(const Pass<T>& pass) const {
  return {reinterpret_cast<T*>(pass.at(logits_)), chunk_, vocabulary_.count, cross_entropy_shape().gradient_stride, 1};
}

template <class T>
CrossEntropyShape Classifier<T>::cross_entropy_shape() const {
  constexpr int64_t k_ratio = sizeof(Accum<T>) / sizeof(T);
  return {chunk_, vocabulary_.count, stride_, k_ratio * stride_};
}

template <class T>
void Classifier<T>::find_losses(const Pass<T>& pass, const Chunk& chunk) const {
  pass.ops.cross_entropy(cross_entropy_shape(), {pass.at(logits_), chunk.targets, chunk.gradient_scale,
                                                 pass.at(losses_), gradient_of_logits(pass).data});
}

template <class T>
void Classifier<T>::find_shared_losses(const Pass<T>& pass, const Chunk& chunk) const {
  using A = Accum<T>;
  const CrossEntropyShape shape = cross_entropy_shape();
  A *const largest = pass.at(largest_), *const whole = pass.at(whole_largest_), *const sums = pass.at(sums_);
  int32_t* const own_targets = pass.at(own_targets_);
  pass.ops.own_rows(chunk_, chunk.targets, vocabulary_.first, vocabulary_.count, own_targets);
  pass.ops.cross_entropy_statistics(shape, pass.at(logits_), own_targets, {largest, sums, sums + chunk_});
  pass.copy(chunk_, static_cast<const A*>(largest), whole);
  pass.ranks.tensor->all_reduce(whole, chunk_, Reduction::max);
  pass.ops.rescale_exponential_sums(chunk_, largest, whole, sums);
  pass.ranks.tensor->all_reduce(sums, 2 * chunk_);
  pass.ops.cross_entropy_gradient(shape, {pass.at(logits_),
                                          own_targets,
                                          {whole, sums, sums + chunk_},
                                          chunk.gradient_scale,
                                          pass.at(losses_),
                                          gradient_of_logits(pass).data});
}

template <class T>
void Classifier<T>::visit(const Pass<T>& pass, const Chunk& chunk) const {
  const double m = static_cast<double>(chunk_), n = static_cast<double>(vocabulary_.count),
               k = static_cast<double>(hidden_);
  const OpTimer::Work product{2 * m * n * k, sizeof(T) * (m * n + n * k + m * k)};
  const auto weight = matrix(pass.weight(weight_), vocabulary_.count, hidden_);
  const auto inputs = matrix(chunk.x, chunk_, hidden_);
  const MatrixView<T> gradients = gradient_of_logits(pass);
  const MatrixView<const T> gradient{gradients.data, gradients.rows, gradients.cols, gradients.row_stride, 1};
  {
    const OpTimer timer(pass.clock, "head forward", product);
    pass.ops.matmul_wide(inputs, transposed(weight), chunk_logits(pass), false);
  }
  {
    const OpTimer timer(pass.clock, "cross-entropy", {0, (2 * sizeof(Accum<T>) + sizeof(T)) * m * n});
    if (tensor_size_ == 1)
      find_losses(pass, chunk);
    else
      find_shared_losses(pass, chunk);
  }
  if (chunk.dx != nullptr) {
    const OpTimer timer(pass.clock, "head backward, input", product);
    pass.ops.matmul(gradient, weight, matrix(chunk.dx, chunk_, hidden_), false);
  }
  if (chunk.dx != nullptr) {
    const OpTimer timer(pass.clock, "head backward, weight", product);
    pass.ops.matmul_wide(transposed(gradient), inputs, matrix(pass.gradient(weight_), vocabulary_.count, hidden_),
                         chunk.adds);
  }
  pass.ops.add_total(chunk_, pass.at(losses_), pass.loss);
}

template <class T>
void Classifier<T>::forward_backward(const Pass<T>& pass, const T* x, const int32_t* targets, double gradient_scale,
                                     T* dx) const {
  for (int64_t row = 0; row < tokens_; row += chunk_)
    visit(pass,
          {x + row * hidden_, targets + row, gradient_scale, dx + row * hidden_, row > 0 || pass.adds_to_gradients()});
}

template <class T>
void Classifier<T>::forward(const Pass<T>& pass, const T* x, const int32_t* targets) const {
  for (int64_t row = 0; row < tokens_; row += chunk_)
    visit(pass, {x + row * hidden_, targets + row, 1.0, nullptr, false});
}

template <class T>
void Classifier<T>::find_logits(const Pass<T>& pass, const T* x, Accum<T>* logits) const {
  const auto weight = matrix(pass.weight(weight_), vocabulary_.count, hidden_);
  const MatrixView<Accum<T>> some = chunk_logits(pass);
  for (int64_t first = 0; first < tokens_; first += chunk_) {
    pass.ops.matmul_wide(matrix(x + first * hidden_, chunk_, hidden_), transposed(weight), some, false);
    for (int64_t r = 0; r < chunk_; ++r)
      pass.device.download(logits + (first + r) * vocabulary_.count, some.data + r * stride_,
                           static_cast<size_t>(vocabulary_.count) * sizeof *logits);
  }
}

template class Classifier<float>;
template class Classifier<bf16>;
template class Classifier<f16>;
template class Classifier<double>;

}  // namespace tprimat

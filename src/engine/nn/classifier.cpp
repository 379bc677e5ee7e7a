#include "nn/classifier.h"

#include "base/check.h"

namespace tprimat::engine {

template <class T>
Classifier<T>::Classifier(const ModelSpec& model, const Plan& plan, const ClassifierBuffers& buffers, int64_t weight)
    : tokens_(plan.tokens()),
      hidden_(model.hidden_size),
      chunk_(buffers.rows),
      weight_(weight),
      vocabulary_(local_vocabulary(model, plan.sharing)),
      tensor_size_(plan.sharing.tensor_size),
      buffers_(buffers) {
  CHECK(tokens_ % chunk_ == 0 && buffers.stride >= vocabulary_.count);
  CHECK(buffers.logits.count == chunk_ * buffers.stride);
}

template <class T>
MatrixView<Accum<T>> Classifier<T>::chunk_logits(const Pass<T>& pass) const {
  return {pass.at(buffers_.logits), chunk_, vocabulary_.count, buffers_.stride, 1};
}

// Each row of gradients lies at the beginning of the row of logits that it is made from.
template <class T>
MatrixView<T> Classifier<T>::gradient_of_logits(const Pass<T>& pass) const {
  return {reinterpret_cast<T*>(pass.at(buffers_.logits)), chunk_, vocabulary_.count,
          cross_entropy_shape().gradient_stride, 1};
}

template <class T>
CrossEntropyShape Classifier<T>::cross_entropy_shape() const {
  constexpr int64_t k_ratio = sizeof(Accum<T>) / sizeof(T);
  return {chunk_, vocabulary_.count, buffers_.stride, k_ratio * buffers_.stride};
}

template <class T>
void Classifier<T>::find_losses(const Pass<T>& pass, const Chunk& chunk) const {
  pass.ops.cross_entropy(cross_entropy_shape(), {pass.at(buffers_.logits), chunk.targets, chunk.gradient_scale,
                                                 pass.at(buffers_.losses), gradient_of_logits(pass).data});
}

template <class T>
void Classifier<T>::find_shared_losses(const Pass<T>& pass, const Chunk& chunk) const {
  using A = Accum<T>;
  const CrossEntropyShape shape = cross_entropy_shape();
  A *const largest = pass.at(buffers_.largest), *const whole = pass.at(buffers_.whole_largest),
           *const sums = pass.at(buffers_.sums);
  int32_t* const own_targets = pass.at(buffers_.own_targets);
  pass.ops.own_rows(chunk_, chunk.targets, vocabulary_.first, vocabulary_.count, own_targets);
  pass.ops.cross_entropy_statistics(shape, pass.at(buffers_.logits), own_targets, {largest, sums, sums + chunk_});
  pass.copy(chunk_, static_cast<const A*>(largest), whole);
  pass.ranks.tensor->all_reduce(whole, chunk_, Reduction::max);
  pass.ops.rescale_exponential_sums(chunk_, largest, whole, sums);
  pass.ranks.tensor->all_reduce(sums, 2 * chunk_);
  pass.ops.cross_entropy_gradient(shape, {pass.at(buffers_.logits),
                                          own_targets,
                                          {whole, sums, sums + chunk_},
                                          chunk.gradient_scale,
                                          pass.at(buffers_.losses),
                                          gradient_of_logits(pass).data});
}

template <class T>
void Classifier<T>::visit(const Pass<T>& pass, const Chunk& chunk) const {
  const auto weight = matrix(pass.weight(weight_), vocabulary_.count, hidden_);
  const auto inputs = matrix(chunk.x, chunk_, hidden_);
  const MatrixView<T> gradients = gradient_of_logits(pass);
  const MatrixView<const T> gradient{gradients.data, gradients.rows, gradients.cols, gradients.row_stride, 1};
  {
    const OpTimer timer(pass.clock, "head forward", product_work<T>(chunk_, hidden_, vocabulary_.count),
                        OpKind::product);
    pass.ops.matmul_wide(inputs, transposed(weight), chunk_logits(pass), false);
  }
  {
    const OpTimer timer(
        pass.clock, "cross-entropy",
        memory_work<Accum<T>>(chunk_, vocabulary_.count, 2.0 + static_cast<double>(sizeof(T)) / sizeof(Accum<T>)));
    if (tensor_size_ == 1)
      find_losses(pass, chunk);
    else
      find_shared_losses(pass, chunk);
  }
  if (chunk.dx != nullptr) {
    const OpTimer timer(pass.clock, "head backward, input", product_work<T>(chunk_, vocabulary_.count, hidden_),
                        OpKind::product);
    pass.ops.matmul(gradient, weight, matrix(chunk.dx, chunk_, hidden_), false);
  }
  if (chunk.dx != nullptr) {
    const OpTimer timer(pass.clock, "head backward, weight", product_work<T>(vocabulary_.count, chunk_, hidden_),
                        OpKind::product);
    pass.find_weight_gradient(gradient, inputs, weight_, chunk.adds);
  }
  const OpTimer timer(pass.clock, "sum of losses", memory_work<Accum<T>>(chunk_, 1, 1));
  pass.ops.add_total(chunk_, pass.at(buffers_.losses), pass.loss);
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
      pass.device.download(logits + (first + r) * vocabulary_.count, some.data + r * buffers_.stride,
                           static_cast<size_t>(vocabulary_.count) * sizeof *logits);
  }
}

template class Classifier<float>;
template class Classifier<bf16>;
template class Classifier<f16>;
template class Classifier<double>;

}  // namespace tprimat::engine

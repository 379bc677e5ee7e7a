#pragma once

#include "nn/embedding.h"

namespace tprimat::engine {

// The language-model head with its loss: logits = x·Wᵀ, softmax cross-entropy, and both gradients, for one chunk of
// tokens after the other. Only one chunk of logits exists at any time. The vocabulary is dealt to the tensor-parallel
// ranks (Megatron-LM, arXiv 1909.08053, section 3).
template <class T>
class Classifier {
 public:
  // `weight` is the offset of W's local rows (vocabulary×hidden): the embedding's own when the two are tied.
  Classifier(const ModelSpec& model, const Plan& plan, const ClassifierBuffers& buffers, int64_t weight);

  // x: tokens×hidden; targets: tokens. Adds the tokens' losses (nats), which are the same on every tensor-parallel
  // rank, to the pass's; overwrites dx (this rank's part of the sum) and adds to the gradient of W, or writes it where
  // the pass is the unit's first. gradient_scale: 1 / tokens of the whole step, times the loss scale.
  void forward_backward(const Pass<T>& pass, const T* x, const int32_t* targets, double gradient_scale, T* dx) const;
  // All logits of the local vocabulary, tokens×vocabulary in the host's memory: to look at a model, not to train it.
  void find_logits(const Pass<T>& pass, const T* x, Accum<T>* logits) const;
  // The loss alone.
  void forward(const Pass<T>& pass, const T* x, const int32_t* targets) const;

 private:
  struct Chunk {
    const T* x;              // chunk×hidden
    const int32_t* targets;  // chunk
    double gradient_scale;
    T* dx;      // nullptr: the loss alone
    bool adds;  // to the gradient of W
  };
  void visit(const Pass<T>& pass, const Chunk& chunk) const;
  MatrixView<Accum<T>> chunk_logits(const Pass<T>& pass) const;
  MatrixView<T> gradient_of_logits(const Pass<T>& pass) const;
  CrossEntropyShape cross_entropy_shape() const;
  void find_losses(const Pass<T>& pass, const Chunk& chunk) const;
  void find_shared_losses(const Pass<T>& pass, const Chunk& chunk) const;

  int64_t tokens_, hidden_, chunk_, weight_;
  RowRange vocabulary_;
  int tensor_size_;
  ClassifierBuffers buffers_;
};

}  // namespace tprimat::engine

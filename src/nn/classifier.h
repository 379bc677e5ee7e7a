#pragma once

#include "nn/pass.h"
#include "spec/model_spec.h"

namespace tprimat {

// The language-model head with its loss: logits = x·Wᵀ, softmax cross-entropy, and both gradients, for one chunk of
// tokens after the other. Only one chunk of logits exists at any time.
template <class T>
class Classifier {
 public:
  // `weight` is the offset of W (vocab×hidden): the embedding's own when the two are tied.
  Classifier(const ModelSpec& model, const Plan& plan, int64_t weight);

  // x: tokens×hidden; targets: tokens. Returns the sum of the tokens' losses (nats); overwrites dx; adds to the
  // gradient of W. gradient_scale: 1 / tokens of the whole step.
  double forward_backward(const Pass<T>& pass, const T* x, const int32_t* targets, double gradient_scale, T* dx) const;

 private:
  double visit_chunk(const Pass<T>& pass, const T* x, const int32_t* targets, double gradient_scale, T* dx) const;

  int64_t tokens_, hidden_, vocab_, chunk_, weight_;
  Slot<Accum<T>> logits_, losses_;
  Slot<T> dlogits_;
};

}  // namespace tprimat

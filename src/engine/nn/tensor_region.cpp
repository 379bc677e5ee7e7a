#include "nn/tensor_region.h"

#include "base/check.h"

namespace tprimat::engine {

template <class T>
TensorRegion<T>::TensorRegion(const ModelSpec& model, const Plan& plan, const SharedBuffers& buffers)
    : tokens_(plan.tokens()),
      stream_tokens_(plan.stream_tokens()),
      hidden_(model.hidden_size),
      size_(plan.sharing.tensor_size),
      split_stream_(plan.sharing.sequence_parallel && size_ > 1),
      gathered_(buffers.gathered),
      partial_(buffers.partial) {
  CHECK(!split_stream_ || partial_.count == tokens_ * hidden_);
}

template <class T>
const T* TensorRegion<T>::gather(const Pass<T>& pass, const T* x, Slot<Element> to) const {
  if (!split_stream_) return x;
  const OpTimer timer(pass.clock, "tensor-parallel exchange", {});
  pass.ranks.tensor->all_gather(x, stream_tokens_ * hidden_, pass.at(to));
  return pass.at(to);
}

template <class T>
void TensorRegion<T>::leave(const Pass<T>& pass, T* y) const {
  if (size_ == 1) return;
  const OpTimer timer(pass.clock, "tensor-parallel exchange", {});
  if (split_stream_)
    pass.ranks.tensor->reduce_scatter(pass.at(partial_), stream_tokens_ * hidden_, y);
  else
    pass.ranks.tensor->all_reduce(y, tokens_ * hidden_);
}

template class TensorRegion<float>;
template class TensorRegion<bf16>;
template class TensorRegion<f16>;
template class TensorRegion<double>;

}  // namespace tprimat::engine

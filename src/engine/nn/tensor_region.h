#pragma once

#include "nn/pass.h"

namespace tprimat::engine {

// The border between the residual stream and the layers that tensor-parallel ranks share (Megatron-LM, arXiv
// 1909.08053; with sequence parallelism arXiv 2205.05198, fig. 5). Inside, every rank sees all tokens and a part of the
// channels; its results are parts of a sum. Outside, each rank has every token, or with sequence parallelism its own
// rows of them (a contiguous share of all sequences·length rows, since what happens there treats each token alone).
// Both passes cross it the same way: in by enter(), out by leave().
template <class T>
class TensorRegion {
 public:
  TensorRegion(const ModelSpec& model, const Plan& plan, const SharedBuffers& buffers);

  // All tokens' rows (tokens×hidden) of the stream's `x` (stream_tokens×hidden); valid until the next enter(). x itself
  // where nothing is split.
  const T* enter(const Pass<T>& pass, const T* x) const { return gather(pass, x, gathered_); }
  // The same of a gradient; valid until partial() is written to, which layers do last.
  const T* enter_gradient(const Pass<T>& pass, const T* dy) const { return gather(pass, dy, partial_); }
  // Where to write this rank's part of the sum (tokens×hidden) that leave() turns into `y`.
  T* partial(const Pass<T>& pass, T* y) const { return split_stream_ ? pass.at(partial_) : y; }
  // y (stream_tokens×hidden) = the sum of all ranks' parts.
  void leave(const Pass<T>& pass, T* y) const;

 private:
  const T* gather(const Pass<T>& pass, const T* x, Slot<Element> to) const;

  int64_t tokens_, stream_tokens_, hidden_;
  int size_;
  bool split_stream_;
  Slot<Element> gathered_, partial_;
};

}  // namespace tprimat::engine

#pragma once

#include <string>

#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace tprimat::engine {

// Buffers that all blocks share, because only one block works at a time.
template <class T>
struct BlockShared {
  BlockShared(const ModelSpec& model, const Plan& plan, const SharedBuffers& planned)
      : buffers(planned), attention(model, plan, planned), region(model, plan, planned) {}
  SharedBuffers buffers;
  AttentionShared<T> attention;
  TensorRegion<T> region;
};

// The residual stream between two layers: the sum so far, and a branch that is yet to be added to it (or none). The
// next norm does both in one visit.
template <class T>
struct Stream {
  const T* sum = nullptr;
  const T* branch = nullptr;
};

// One pre-norm Transformer block:  mid = x + attention(norm(x));  y = mid + mlp(norm(mid)).
template <class T>
class Block {
 public:
  // Weights go into the unit begun last.
  Block(const ModelSpec& model, const Plan& plan, const BlockBuffers& buffers, const std::string& name);

  // stream.sum is kept by the caller until backward. What is returned is valid until another block works.
  Stream<T> forward(const Pass<T>& pass, const BlockShared<T>& shared, const Stream<T>& stream) const;
  // dy (stream_tokens×hidden) becomes dx in place. `first_sum`: the stream's sum where the block is the first.
  void backward(const Pass<T>& pass, const BlockShared<T>& shared, const T* first_sum, T* dy) const;

 private:
  const T* input(const Pass<T>& pass, const T* first_sum) const { return first_ ? first_sum : pass.at(input_); }
  T* finish_branch(const Pass<T>& pass, const BlockShared<T>& shared, const Linear<T>& output,
                   Slot<Element> branch) const;
  Stream<T> compute(const Pass<T>& pass, const BlockShared<T>& shared, const T* normed, const T* x) const;

  Slot<Element> input_;     // what came in, branch included
  bool first_, recompute_;  // first: the stream comes in without a branch
  int64_t rows_;
  Norm<T> attention_norm_;
  Attention<T> attention_;
  Slot<Element> mid_;
  Norm<T> mlp_norm_;
  Mlp<T> mlp_;
};

}  // namespace tprimat::engine

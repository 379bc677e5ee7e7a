#pragma once

#include <string>

#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace tprimat {

// Buffers that all blocks share, because only one block works at a time.
template <class T>
struct BlockShared {
  BlockShared(const ModelSpec& model, const Plan& plan);
  AttentionShared<T> attention;
  MlpShared<T> mlp;
  TensorRegion<T> region;
  Slot<T> attention_branch, mlp_branch;  // stream_tokens×hidden: what joins the residual stream next
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
  // `first`: the stream comes in without a branch. Weights go into the unit begun last.
  Block(const ModelSpec& model, const Plan& plan, const std::string& name, bool first);

  // stream.sum is kept by the caller until backward. What is returned is valid until another block works.
  Stream<T> forward(const Pass<T>& pass, const BlockShared<T>& shared, const Stream<T>& stream) const;
  // dy (stream_tokens×hidden) becomes dx in place. `first_sum`: the stream's sum where the block is the first.
  void backward(const Pass<T>& pass, const BlockShared<T>& shared, const T* first_sum, T* dy) const;

 private:
  const T* input(const Pass<T>& pass, const T* first_sum) const { return first_ ? first_sum : pass.at(input_); }
  T* finish_branch(const Pass<T>& pass, const BlockShared<T>& shared, const Linear<T>& output, Slot<T> branch) const;
  Stream<T> compute(const Pass<T>& pass, const BlockShared<T>& shared, const T* normed, const T* x) const;

  bool first_, recompute_;
  int64_t rows_;
  Slot<T> input_;  // what came in, branch included
  Norm<T> attention_norm_;
  Attention<T> attention_;
  Slot<T> mid_;
  Norm<T> mlp_norm_;
  Mlp<T> mlp_;
};

}  // namespace tprimat

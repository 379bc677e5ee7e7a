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
  Slot<T> branch;  // tokens×hidden: what attention or MLP returns before it joins the residual stream
};

// One pre-norm Transformer block:  mid = x + attention(norm(x));  y = mid + mlp(norm(mid)).
template <class T>
class Block {
 public:
  Block(const ModelSpec& model, const Plan& plan, const std::string& name);

  // x: tokens×hidden, kept by the caller until backward. Returns y, which the block keeps.
  const T* forward(const Pass<T>& pass, const BlockShared<T>& shared, const T* x) const;
  // dy becomes dx in place.
  void backward(const Pass<T>& pass, const BlockShared<T>& shared, const T* x, T* dy) const;

 private:
  int64_t elements_;  // tokens·hidden
  Norm<T> attention_norm_;
  Attention<T> attention_;
  Norm<T> mlp_norm_;
  Mlp<T> mlp_;
  Slot<T> mid_, output_;
};

}  // namespace tprimat

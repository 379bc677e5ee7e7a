#pragma once

#include <optional>
#include <string>

#include "nn/context_pieces.h"
#include "nn/linear.h"
#include "nn/tensor_region.h"
#include "ops/rope_table.h"

namespace tprimat::engine {

// Buffers that all layers share, because only one layer works at a time.
template <class T>
struct AttentionShared {
  AttentionShared(const ModelSpec& model, const Plan& plan, const SharedBuffers& buffers);
  // Once, after the arena exists.
  void prepare(const Pass<T>& pass) const;
  RopeTable<Accum<T>> rope(const Pass<T>& pass) const { return {pass.at(cosine), pass.at(sine)}; }

  RopeFrequencies frequencies;
  std::vector<int64_t> positions;
  Slot<Sum> cosine, sine;
  Slot<Element> dqkv, dcontext;
  ContextExchange<T> exchange;
};

// Grouped-query attention: qkv product, norm of queries and keys where the model has it, rotary positions, causal
// attention, output product.
template <class T>
class Attention {
 public:
  Attention(const ModelSpec& model, const Plan& plan, const AttentionBuffers& buffers, const std::string& name);

  // x, y: tokens×hidden; y without the output's bias, which joins when all ranks' parts are summed.
  void forward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, T* y) const;
  // dy, dx: tokens×hidden.
  void backward(const Pass<T>& pass, const AttentionShared<T>& shared, const T* x, const T* dy, T* dx) const;
  const Linear<T>& output() const { return out_; }

 private:
  struct Rows {  // of one piece's queries, and of the keys and values that they may see
    HeadRows<T> query, key, value;
  };
  MatrixView<T> heads_of(const Pass<T>& pass) const {
    return matrix(pass.at(query_norm_ ? buffers_.normed : buffers_.qkv_values), batch_.tokens(), heads_.row_width());
  }
  HeadRows<T> context_rows(T* data, const ContextPiece& piece) const;
  // `local`: tokens×row_width; `everywhere`: keys and values of whole sequences, nullptr where the local ones are all.
  Rows rows_of(const MatrixView<T>& local, T* everywhere, const ContextPiece& piece) const;
  OpWork work(double products, double passes) const;
  OpWork rotary_work() const {
    return memory_work<T>(batch_.tokens(), heads_.query_width() + heads_.key_value_width(), 2);
  }
  AttentionShape shape_of(const ContextPiece& piece) const;
  RopeShape rope_shape() const;
  HeadNormShape norm_shape(int64_t heads) const;
  void norm_heads(const Pass<T>& pass) const;
  void norm_heads_backward(const Pass<T>& pass, T* dqkv) const;
  void rotate(const Pass<T>& pass, const AttentionShared<T>& shared, int direction, T* heads) const;
  void attend(const Pass<T>& pass, const AttentionShared<T>& shared) const;
  bool finishes_gradients(const Pass<T>& pass) const;
  MatrixView<T> gradient_of_heads(const Pass<T>& pass, const AttentionShared<T>& shared) const;
  void attend_backward(const Pass<T>& pass, const AttentionShared<T>& shared, const MatrixView<T>& dqkv) const;

  LocalHeads heads_;
  BatchShape batch_;
  int64_t window_;
  double norm_eps_;
  bool rotary_;
  std::vector<ContextPiece> pieces_;
  int context_size_;
  Linear<T> qkv_;
  std::optional<int64_t> query_norm_, key_norm_;
  Linear<T> out_;
  AttentionBuffers buffers_;
};

// Standard deviation of initial weights: 0.02, and for products that feed the residual stream 0.02/√(2·layers), as in
// GPT-2 and Megatron-LM.
inline constexpr double k_init_stddev = 0.02;
double residual_init_stddev(const ModelSpec& model);

}  // namespace tprimat::engine

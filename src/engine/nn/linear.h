#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nn/pass.h"

namespace tprimat::engine {

struct LinearShape {
  Shard weight;  // outputs×inputs
  double init_stddev = 0.02;
  bool row_parallel = false;   // the inputs are split: each tensor-parallel rank gives a part of the sum, and the bias
                               // joins after the sum
  int64_t shared_outputs = 0;  // the last outputs are those of key/value heads that several ranks hold
};

// Shards of a weight whose outputs or whose inputs are dealt to the tensor-parallel ranks.
Shard output_shard(std::vector<RowRange> rows, int64_t whole_rows, int64_t inputs);
Shard input_shard(int64_t outputs, RowRange inputs, int64_t whole_inputs);

// y = x·Wᵀ, and its bias: with the product, or for who adds it later (a row-parallel layer's joins when the parts of
// all ranks are summed).  W: outputs×inputs, the local part.
//
// Where the plan rounds to fp8, each product multiplies what its operands would be in 8 bits, each tensor with a scale
// of its own: x and W in E4M3, the gradient of y in E5M2 (the hybrid recipe of NVIDIA's Transformer Engine;
// Micikevicius et al., arXiv 2209.05433). A device with units for such numbers multiplies them where 16 divides all
// sizes (ops/fp8_product.h); otherwise the product itself is made in T. The bias's gradient is not of what is rounded,
// so biases and gelus stay apart from these products.
template <class T>
class Linear {
 public:
  Linear(const Plan& plan, const LinearBuffers& buffers, const std::string& name, const LinearShape& shape);

  int64_t inputs() const { return inputs_; }
  int64_t outputs() const { return outputs_; }
  bool rounds_to_fp8() const { return fp8_ || units_; }
  const T* bias(const Pass<T>& pass) const { return bias_ ? pass.weight(*bias_) : nullptr; }
  Accum<T>* bias_gradient(const Pass<T>& pass) const { return bias_ ? pass.gradient(*bias_) : nullptr; }

  // x: rows×inputs; y: rows×outputs. The bias is not in it.
  void forward(const Pass<T>& pass, const MatrixView<const T>& x, T* y) const;
  // y with the bias, where there is one.
  void forward_with_bias(const Pass<T>& pass, const MatrixView<const T>& x, T* y) const;
  // The product, its bias and an activation (`before_gelu` or `swiglu` of the epilogue). Not where the plan rounds to
  // fp8.
  void forward_through(const Pass<T>& pass, const MatrixView<const T>& x, Epilogue<T> activation, T* y) const;
  // y: rows×outputs. Nothing where there is no bias.
  void add_bias_to(const Pass<T>& pass, int64_t rows, T* y) const;
  void add_bias_gradient(const Pass<T>& pass, int64_t rows, const T* dy) const;
  // Adds to the gradient of W, or writes it where the pass is the unit's first; overwrites dx: rows×inputs.
  void backward(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy, T* dx) const;
  // Adds to the gradient of the bias besides, where there is one.
  void backward_with_bias(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy,
                          T* dx) const;
  // dx is the gradient of what is before the activation that gave x (`gelu_input` or `swiglu_input` of the epilogue).
  // Not where the plan rounds to fp8.
  void backward_through(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy,
                        const Epilogue<T>& activation, const MatrixView<T>& dx) const;

 private:
  enum class Transposed { no, yes, both };
  struct Rounding {
    Fp8Format format;
    Transposed transposed;
    Fp8Scaling scaling;
  };
  void quantize(const Pass<T>& pass, const Fp8Tensor& tensor, const MatrixView<const T>& x,
                const Rounding& rounding) const;
  struct Sides {
    int64_t rows, cols;
  };
  // As it was quantised, rows×cols; or transposed, cols×rows.
  Fp8Matrix quantized(const Pass<T>& pass, const Fp8Tensor& tensor, Sides sides, Fp8Format format,
                      bool transposed) const;
  void forward_fp8(const Pass<T>& pass, int64_t rows, const T* x, T* y) const;
  void add_weight_gradient_fp8(const Pass<T>& pass, int64_t rows, const T* x, const T* dy) const;
  void find_input_gradient_fp8(const Pass<T>& pass, int64_t rows, T* dx) const;
  MatrixView<const T> rounded(const Pass<T>& pass, Slot<Element> Fp8Copies::*copy, const MatrixView<const T>& x) const;
  MatrixView<const T> rounded_gradient(const Pass<T>& pass, const MatrixView<const T>& dy) const;
  MatrixView<const T> rounded_weight(const Pass<T>& pass) const;
  void multiply(const Pass<T>& pass, const MatrixView<const T>& x, const Epilogue<T>& epilogue, T* y) const;
  void backward_fp8(const Pass<T>& pass, int64_t rows, const T* x, const T* dy, T* dx) const;
  enum class BiasGradient { apart, with_weight };
  void find_weight_gradient(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy,
                            BiasGradient bias) const;
  void find_input_gradient(const Pass<T>& pass, const MatrixView<const T>& dy, const Epilogue<T>& epilogue,
                           const MatrixView<T>& dx) const;

  std::string forward_name_, input_name_, weight_name_;
  int64_t outputs_, inputs_;
  int64_t weight_;
  std::optional<int64_t> bias_;
  std::optional<Fp8Copies> fp8_;
  std::optional<Fp8Tensors> units_;
};

}  // namespace tprimat::engine

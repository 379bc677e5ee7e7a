#include "nn/linear.h"

#include "base/check.h"

namespace tprimat::engine {
namespace {

// "layers.3.mlp.down" → "mlp.down": all layers are timed together.
std::string kind_of(const std::string& name) {
  if (!name.starts_with("layers.")) return name;
  return name.substr(name.find('.', std::string_view("layers.").size()) + 1);
}

}  // namespace

Shard output_shard(std::vector<RowRange> rows, int64_t whole_rows, int64_t inputs) {
  return {whole_rows, inputs, std::move(rows), 0, inputs};
}

Shard input_shard(int64_t outputs, RowRange inputs, int64_t whole_inputs) {
  return {outputs, whole_inputs, {{0, outputs}}, inputs.first, inputs.count};
}

template <class T>
Linear<T>::Linear(const Plan& plan, const LinearBuffers& buffers, const std::string& name, const LinearShape& shape)
    : forward_name_(kind_of(name) + " forward"),
      input_name_(kind_of(name) + " backward, input"),
      weight_name_(kind_of(name) + " backward, weight"),
      outputs_(shape.weight.row_count()),
      inputs_(shape.weight.cols),
      fp8_(buffers.copies),
      units_(buffers.units) {
  CHECK(!fp8_ || fp8_->weight.count == outputs_ * inputs_);
  CHECK(!units_ || units_->weight.values.count == outputs_ * inputs_);
  Parameter weight{name + ".weight", shape.weight, 0.0, shape.init_stddev, true};
  weight.is_written_first = true;
  if (shape.shared_outputs > 0) weight.shared_from = (outputs_ - shape.shared_outputs) * inputs_;
  weight_ = plan.parameters.add(weight, buffers.weight);
  if (!buffers.bias) return;
  Parameter bias{name + ".bias", {shape.weight.whole_rows, 1, shape.weight.rows, 0, 1}};
  if (shape.shared_outputs > 0) bias.shared_from = outputs_ - shape.shared_outputs;
  if (shape.row_parallel) {
    bias.counts_in_norm = plan.sharing.tensor_rank == 0;
    bias.partial_gradient = plan.sharing.sequence_parallel;
  }
  bias_ = plan.parameters.add(bias, *buffers.bias);
}

template <class T>
void Linear<T>::quantize(const Pass<T>& pass, const Fp8Tensor& tensor, const MatrixView<const T>& x,
                         const Rounding& rounding) const {
  const auto [format, transposed, scaling] = rounding;
  float* const scale = pass.at(tensor.scale);
  pass.ops.fp8_quantize({x.rows,
                         x.cols,
                         x.data,
                         format,
                         scaling,
                         {scale, scale + 1, scale + 2},
                         transposed == Transposed::yes ? nullptr : pass.at(tensor.values),
                         transposed == Transposed::no ? nullptr : pass.at(tensor.transposed)});
}

template <class T>
Fp8Matrix Linear<T>::quantized(const Pass<T>& pass, const Fp8Tensor& tensor, Sides sides, Fp8Format format,
                               bool transposed) const {
  const float* const back = pass.at(tensor.scale) + 1;
  if (transposed) return {pass.at(tensor.transposed), sides.cols, sides.rows, format, back};
  return {pass.at(tensor.values), sides.rows, sides.cols, format, back};
}

template <class T>
void Linear<T>::forward_fp8(const Pass<T>& pass, int64_t rows, const T* x, T* y) const {
  constexpr Fp8Format k_format = Fp8Format::e4m3;
  constexpr Fp8Scaling k_scaling = Fp8Scaling::current;
  quantize(pass, units_->input, matrix(x, rows, inputs_), {k_format, Transposed::no, k_scaling});
  quantize(pass, units_->weight, matrix(pass.weight(weight_), outputs_, inputs_),
           {k_format, Transposed::no, k_scaling});
  pass.ops.fp8_matmul({quantized(pass, units_->input, {rows, inputs_}, k_format, false),
                       quantized(pass, units_->weight, {outputs_, inputs_}, k_format, false), matrix(y, rows, outputs_),
                       false, true});
}

// The input's scale is the forward pass's. The gradient of the output stays for that of the input.
template <class T>
void Linear<T>::add_weight_gradient_fp8(const Pass<T>& pass, int64_t rows, const T* x, const T* dy) const {
  quantize(pass, units_->gradient, matrix(dy, rows, outputs_),
           {Fp8Format::e5m2, Transposed::both, Fp8Scaling::current});
  quantize(pass, units_->input, matrix(x, rows, inputs_), {Fp8Format::e4m3, Transposed::yes, Fp8Scaling::delayed});
  pass.ops.fp8_matmul_wide({quantized(pass, units_->gradient, {rows, outputs_}, Fp8Format::e5m2, true),
                            quantized(pass, units_->input, {rows, inputs_}, Fp8Format::e4m3, true),
                            matrix(pass.gradient(weight_), outputs_, inputs_), pass.adds_to_gradients(), false});
}

template <class T>
void Linear<T>::find_input_gradient_fp8(const Pass<T>& pass, int64_t rows, T* dx) const {
  quantize(pass, units_->weight, matrix(pass.weight(weight_), outputs_, inputs_),
           {Fp8Format::e4m3, Transposed::yes, Fp8Scaling::delayed});
  pass.ops.fp8_matmul({quantized(pass, units_->gradient, {rows, outputs_}, Fp8Format::e5m2, false),
                       quantized(pass, units_->weight, {outputs_, inputs_}, Fp8Format::e4m3, true),
                       matrix(dx, rows, inputs_), false, false});
}

// The matrix itself where nothing is rounded.
template <class T>
MatrixView<const T> Linear<T>::rounded(const Pass<T>& pass, Slot<Element> Fp8Copies::*copy,
                                       const MatrixView<const T>& x) const {
  if (!fp8_) return x;
  T* const to = pass.at((*fp8_).*copy);
  CHECK(x.rows * x.cols <= ((*fp8_).*copy).count);
  pass.ops.fp8_round(x.rows * x.cols, x.data, copy == &Fp8Copies::gradient ? Fp8Format::e5m2 : Fp8Format::e4m3, to);
  return matrix<const T>(to, x.rows, x.cols);
}

template <class T>
MatrixView<const T> Linear<T>::rounded_weight(const Pass<T>& pass) const {
  return rounded(pass, &Fp8Copies::weight, matrix(pass.weight(weight_), outputs_, inputs_));
}

template <class T>
MatrixView<const T> Linear<T>::rounded_gradient(const Pass<T>& pass, const MatrixView<const T>& dy) const {
  if (!fp8_) return dy;
  const OpTimer timer(pass.clock, "fp8 rounding backward", memory_work<T>(dy.rows, outputs_, 2));
  return rounded(pass, &Fp8Copies::gradient, dy);
}

template <class T>
void Linear<T>::multiply(const Pass<T>& pass, const MatrixView<const T>& x, const Epilogue<T>& epilogue, T* y) const {
  CHECK(x.cols == inputs_);
  const OpTimer timer(pass.clock, forward_name_, product_work<T>(x.rows, inputs_, outputs_), OpKind::product);
  CHECK(!x.in_blocks || !rounds_to_fp8());
  if (units_) return forward_fp8(pass, x.rows, x.data, y);
  const MatrixView<const T> input = rounded(pass, &Fp8Copies::input, x);
  pass.ops.matmul_fused(input, transposed(rounded_weight(pass)), epilogue, matrix(y, x.rows, outputs_));
}

template <class T>
void Linear<T>::forward(const Pass<T>& pass, const MatrixView<const T>& x, T* y) const {
  multiply(pass, x, {}, y);
}

template <class T>
void Linear<T>::forward_with_bias(const Pass<T>& pass, const MatrixView<const T>& x, T* y) const {
  const bool fused = !rounds_to_fp8();
  multiply(pass, x, {fused ? bias(pass) : nullptr}, y);
  if (!fused) add_bias_to(pass, x.rows, y);
}

template <class T>
void Linear<T>::forward_through(const Pass<T>& pass, const MatrixView<const T>& x, Epilogue<T> activation, T* y) const {
  CHECK(!rounds_to_fp8());
  activation.bias = bias(pass);
  multiply(pass, x, activation, y);
}

template <class T>
void Linear<T>::add_bias_to(const Pass<T>& pass, int64_t rows, T* y) const {
  if (!bias_) return;
  const OpTimer timer(pass.clock, "bias forward", memory_work<T>(rows, outputs_, 2));
  pass.ops.add_bias(rows, outputs_, pass.weight(*bias_), y);
}

template <class T>
void Linear<T>::add_bias_gradient(const Pass<T>& pass, int64_t rows, const T* dy) const {
  if (!bias_) return;
  const OpTimer timer(pass.clock, "bias backward", memory_work<T>(rows, outputs_, 1));
  pass.ops.add_column_sums(rows, outputs_, dy, pass.gradient(*bias_));
}

template <class T>
void Linear<T>::backward_fp8(const Pass<T>& pass, int64_t rows, const T* x, const T* dy, T* dx) const {
  {
    const OpTimer timer(pass.clock, weight_name_, product_work<T>(outputs_, rows, inputs_), OpKind::product);
    add_weight_gradient_fp8(pass, rows, x, dy);
  }
  const OpTimer timer(pass.clock, input_name_, product_work<T>(rows, outputs_, inputs_), OpKind::product);
  find_input_gradient_fp8(pass, rows, dx);
}

template <class T>
void Linear<T>::find_weight_gradient(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy,
                                     BiasGradient bias) const {
  const OpTimer timer(pass.clock, weight_name_, product_work<T>(outputs_, x.rows, inputs_), OpKind::product);
  const MatrixView<const T> input = rounded(pass, &Fp8Copies::input, x);
  if (bias == BiasGradient::with_weight && !pass.finds_squares())
    return pass.ops.matmul_with_row_sums(transposed(dy), input, matrix(pass.gradient(weight_), outputs_, inputs_),
                                         pass.adds_to_gradients(), bias_gradient(pass));
  pass.find_weight_gradient(dy, input, weight_, pass.adds_to_gradients());
  CHECK(bias == BiasGradient::apart || !dy.in_blocks);
  if (bias == BiasGradient::with_weight) pass.ops.add_column_sums(dy.rows, outputs_, dy.data, bias_gradient(pass));
}

template <class T>
void Linear<T>::find_input_gradient(const Pass<T>& pass, const MatrixView<const T>& dy, const Epilogue<T>& epilogue,
                                    const MatrixView<T>& dx) const {
  const OpTimer timer(pass.clock, input_name_, product_work<T>(dy.rows, outputs_, inputs_), OpKind::product);
  pass.ops.matmul_fused(dy, rounded_weight(pass), epilogue, dx);
}

template <class T>
void Linear<T>::backward(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy,
                         T* dx) const {
  CHECK(!(x.in_blocks || dy.in_blocks) || !rounds_to_fp8());
  if (units_) return backward_fp8(pass, x.rows, x.data, dy.data, dx);
  const MatrixView<const T> gradient = rounded_gradient(pass, dy);
  find_weight_gradient(pass, x, gradient, BiasGradient::apart);
  find_input_gradient(pass, gradient, {}, matrix(dx, x.rows, inputs_));
}

template <class T>
void Linear<T>::backward_with_bias(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy,
                                   T* dx) const {
  if (rounds_to_fp8() || !bias_) {
    add_bias_gradient(pass, dy.rows, dy.data);
    return backward(pass, x, dy, dx);
  }
  find_weight_gradient(pass, x, dy, BiasGradient::with_weight);
  find_input_gradient(pass, dy, {}, matrix(dx, x.rows, inputs_));
}

template <class T>
void Linear<T>::backward_through(const Pass<T>& pass, const MatrixView<const T>& x, const MatrixView<const T>& dy,
                                 const Epilogue<T>& activation, const MatrixView<T>& dx) const {
  CHECK(!rounds_to_fp8());
  find_weight_gradient(pass, x, dy, BiasGradient::apart);
  find_input_gradient(pass, dy, activation, dx);
}

template class Linear<float>;
template class Linear<bf16>;
template class Linear<f16>;
template class Linear<double>;

}  // namespace tprimat::engine

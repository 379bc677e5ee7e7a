#include "nn/mlp.h"

#include "base/check.h"
#include "nn/attention.h"

namespace tprimat::engine {
namespace {

LinearShape up_shape(const ModelSpec& model, const Sharing& sharing) {
  const RowRange own = local_inner(model, sharing);
  LinearShape shape;
  shape.weight = output_shard({own}, model.ffn_hidden_size, model.hidden_size);
  if (model.mlp == MlpKind::swiglu)
    shape.weight = output_shard({own, {model.ffn_hidden_size + own.first, own.count}}, 2 * model.ffn_hidden_size,
                                model.hidden_size);
  shape.init_stddev = k_init_stddev;
  return shape;
}

LinearShape down_shape(const ModelSpec& model, const Sharing& sharing) {
  return {input_shard(model.hidden_size, local_inner(model, sharing), model.ffn_hidden_size),
          residual_init_stddev(model), true, 0};
}

}  // namespace

template <class T>
Mlp<T>::Mlp(const ModelSpec& model, const Plan& plan, const MlpBuffers& buffers, const std::string& name)
    : kind_(model.mlp),
      rows_(plan.tokens()),
      width_(local_inner(model, plan.sharing).count),
      up_(plan, buffers.up, name + (kind_ == MlpKind::swiglu ? ".gate_up" : ".up"), up_shape(model, plan.sharing)),
      down_(plan, buffers.down, name + ".down", down_shape(model, plan.sharing)),
      buffers_(buffers),
      inner_is_kept_(plan.recompute != Recompute::selective) {
  CHECK(buffers.up_values.count == rows_ * up_.outputs() && buffers.inner.count == rows_ * width_);
}

template <class T>
bool Mlp<T>::fuses_activation(const Pass<T>& pass) const {
  const auto& ops = pass.ops;
  const int64_t multiple = kind_ == MlpKind::swiglu ? ops.fused_swiglu_multiple : ops.fused_gelu_multiple;
  return multiple > 0 && width_ % multiple == 0 && !up_.rounds_to_fp8();
}

// Whether fused products keep slopes: only if the activation is never made again from them.
template <class T>
bool Mlp<T>::keeps_slopes(const Pass<T>& pass) const {
  return inner_is_kept_ && pass.ops.keeps_slopes;
}

// What the activation makes, in blocks (MatrixView) where it can.
template <class T>
MatrixView<T> Mlp<T>::inner(const Pass<T>& pass) const {
  MatrixView<T> inner = matrix(pass.at(buffers_.inner), rows_, width_);
  inner.in_blocks = fuses_activation(pass) && pass.ops.has_blocks && rows_ % k_block_side == 0;
  return inner;
}

// What is to be added to `up_values_` before the gelu: where that is fused, they have the bias.
template <class T>
const T* Mlp<T>::bias_to_come(const Pass<T>& pass) const {
  return fuses_activation(pass) ? nullptr : up_.bias(pass);
}

template <class T>
void Mlp<T>::activate(const Pass<T>& pass) const {
  const OpTimer timer(pass.clock, "mlp activation forward", memory_work<T>(rows_, up_.outputs() + width_, 1));
  const bool is_gated = kind_ == MlpKind::swiglu;
  if (fuses_activation(pass) && pass.ops.activate_kept != nullptr)
    return pass.ops.activate_kept(is_gated, pass.at(buffers_.up_values), inner(pass));
  if (is_gated)
    pass.ops.swiglu_forward({rows_, width_}, pass.at(buffers_.up_values), pass.at(buffers_.inner));
  else
    pass.ops.bias_gelu_forward({rows_, width_}, pass.at(buffers_.up_values), bias_to_come(pass),
                               pass.at(buffers_.inner));
}

template <class T>
void Mlp<T>::activate_backward(const Pass<T>& pass, const T* dinner, T* dup) const {
  const OpTimer timer(pass.clock, "mlp activation backward", memory_work<T>(rows_, 2 * up_.outputs() + width_, 1));
  if (kind_ == MlpKind::swiglu)
    pass.ops.swiglu_backward({rows_, width_}, pass.at(buffers_.up_values), dinner, dup);
  else
    pass.ops.bias_gelu_backward({rows_, width_},
                                {pass.at(buffers_.up_values), up_.bias(pass), dinner, dup, up_.bias_gradient(pass)});
}

template <class T>
void Mlp<T>::forward(const Pass<T>& pass, const T* x, T* y) const {
  T* const up = pass.at(buffers_.up_values);
  const MatrixView<T> inner = this->inner(pass);
  const auto input = matrix(x, rows_, up_.inputs());
  const bool is_gated = kind_ == MlpKind::swiglu, slopes = keeps_slopes(pass);
  if (fuses_activation(pass)) {
    if (is_gated)
      up_.forward_through(pass, input, {.swiglu = inner.data, .keeps_slopes = slopes, .to_blocks = inner.in_blocks},
                          up);
    else
      up_.forward_through(pass, input, {.before_gelu = up, .keeps_slopes = slopes, .to_blocks = inner.in_blocks},
                          inner.data);
  } else {
    if (is_gated)
      up_.forward_with_bias(pass, input, up);
    else
      up_.forward(pass, input, up);  // the activation adds the bias
    activate(pass);
  }
  down_.forward(pass, read_only(inner), y);
}

template <class T>
void Mlp<T>::backward(const Pass<T>& pass, const SharedBuffers& shared, const T* x, const T* dy, T* dx) const {
  T* const dinner = pass.at(shared.dinner);
  MatrixView<T> dup = matrix(pass.at(shared.dup), rows_, up_.outputs());
  if (!inner_is_kept_) activate(pass);
  const MatrixView<const T> inner = read_only(this->inner(pass)), input = matrix(x, rows_, up_.inputs()),
                            doutput = matrix(dy, rows_, down_.outputs());
  const bool is_gated = kind_ == MlpKind::swiglu, is_fused = fuses_activation(pass);
  if (is_fused) {
    Epilogue<T> activation;
    (is_gated ? activation.swiglu_input : activation.gelu_input) = pass.at(buffers_.up_values);
    activation.keeps_slopes = keeps_slopes(pass);
    // The gradient of a bias adds up the columns of dup, which has to be row-major for that.
    activation.to_blocks = dup.in_blocks = inner.in_blocks && up_.bias(pass) == nullptr;
    down_.backward_through(pass, inner, doutput, activation, dup);
  } else {
    down_.backward(pass, inner, doutput, dinner);
    activate_backward(pass, dinner, dup.data);
  }
  if (is_fused || is_gated) return up_.backward_with_bias(pass, input, read_only(dup), dx);
  up_.backward(pass, input, read_only(dup), dx);  // the bias has its gradient from the activation's
}

template class Mlp<float>;
template class Mlp<bf16>;
template class Mlp<f16>;
template class Mlp<double>;

}  // namespace tprimat::engine

#include "nn/mlp.h"

#include "nn/attention.h"

namespace tprimat {
namespace {

RowRange local_width(const ModelSpec& model, const Sharing& sharing) {
  return share_of(0, model.ffn_hidden_size, sharing.tensor_rank, sharing.tensor_size);
}

int64_t up_outputs(const ModelSpec& model, const Sharing& sharing) {
  return (model.mlp == MlpKind::swiglu ? 2 : 1) * local_width(model, sharing).count;
}

LinearShape up_shape(const ModelSpec& model, const Sharing& sharing) {
  const RowRange own = local_width(model, sharing);
  LinearShape shape;
  shape.weight = output_shard({own}, model.ffn_hidden_size, model.hidden_size);
  if (model.mlp == MlpKind::swiglu)
    shape.weight = output_shard({own, {model.ffn_hidden_size + own.first, own.count}}, 2 * model.ffn_hidden_size,
                                model.hidden_size);
  shape.bias = model.linear_bias;
  shape.init_stddev = k_init_stddev;
  return shape;
}

LinearShape down_shape(const ModelSpec& model, const Sharing& sharing) {
  return {input_shard(model.hidden_size, local_width(model, sharing), model.ffn_hidden_size), model.linear_bias,
          residual_init_stddev(model), true, 0};
}

}  // namespace

template <class T>
MlpShared<T>::MlpShared(const ModelSpec& model, const Plan& plan)
    : dup(plan.workspace.reserve<T>("workspace", plan.tokens() * up_outputs(model, plan.sharing))),
      dinner(plan.workspace.reserve<T>("workspace", plan.tokens() * local_width(model, plan.sharing).count)) {}

template <class T>
Mlp<T>::Mlp(const ModelSpec& model, const Plan& plan, const std::string& name)
    : kind_(model.mlp),
      rows_(plan.tokens()),
      width_(local_width(model, plan.sharing).count),
      up_(plan, name + (kind_ == MlpKind::swiglu ? ".gate_up" : ".up"), up_shape(model, plan.sharing)),
      down_(plan, name + ".down", down_shape(model, plan.sharing)),
      up_values_(plan.kept.reserve<T>("activations", rows_ * up_.outputs())),
      inner_(plan.cheap().reserve<T>("activations", rows_ * width_)),
      inner_is_kept_(plan.recompute != Recompute::selective) {}

template <class T>
void Mlp<T>::activate(const Pass<T>& pass) const {
  const OpTimer timer(pass.clock, "mlp activation forward",
                      {0, sizeof(T) * static_cast<double>(rows_ * (up_.outputs() + width_))});
  if (kind_ == MlpKind::swiglu)
    pass.ops.swiglu_forward({rows_, width_}, pass.at(up_values_), pass.at(inner_));
  else
    pass.ops.bias_gelu_forward({rows_, width_}, pass.at(up_values_), up_.bias(pass), pass.at(inner_));
}

template <class T>
void Mlp<T>::activate_backward(const Pass<T>& pass, const T* dinner, T* dup) const {
  const OpTimer timer(pass.clock, "mlp activation backward",
                      {0, sizeof(T) * static_cast<double>(rows_ * (2 * up_.outputs() + width_))});
  if (kind_ == MlpKind::swiglu)
    pass.ops.swiglu_backward({rows_, width_}, pass.at(up_values_), dinner, dup);
  else
    pass.ops.bias_gelu_backward({rows_, width_},
                                {pass.at(up_values_), up_.bias(pass), dinner, dup, up_.bias_gradient(pass)});
}

template <class T>
void Mlp<T>::forward(const Pass<T>& pass, const T* x, T* y) const {
  up_.forward(pass, rows_, x, pass.at(up_values_));
  if (kind_ == MlpKind::swiglu) up_.add_bias_to(pass, rows_, pass.at(up_values_));
  activate(pass);
  down_.forward(pass, rows_, pass.at(inner_), y);
}

template <class T>
void Mlp<T>::backward(const Pass<T>& pass, const MlpShared<T>& shared, const T* x, const T* dy, T* dx) const {
  T* const dinner = pass.at(shared.dinner);
  T* const dup = pass.at(shared.dup);
  if (!inner_is_kept_) activate(pass);
  down_.backward(pass, rows_, pass.at(inner_), dy, dinner);
  activate_backward(pass, dinner, dup);
  if (kind_ == MlpKind::swiglu) up_.add_bias_gradient(pass, rows_, dup);
  up_.backward(pass, rows_, x, dup, dx);
}

template struct MlpShared<float>;
template struct MlpShared<bf16>;
template struct MlpShared<f16>;
template struct MlpShared<double>;
template class Mlp<float>;
template class Mlp<bf16>;
template class Mlp<f16>;
template class Mlp<double>;

}  // namespace tprimat

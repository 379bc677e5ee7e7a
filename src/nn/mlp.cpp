#include "nn/mlp.h"

#include "nn/attention.h"

namespace tprimat {

template <class T>
MlpShared<T>::MlpShared(const ModelSpec& model, const Plan& plan)
    : dgate_up(plan.arena.reserve<T>("workspace", plan.batch.tokens() * 2 * model.ffn_hidden_size)),
      dinner(plan.arena.reserve<T>("workspace", plan.batch.tokens() * model.ffn_hidden_size)) {}

template <class T>
Mlp<T>::Mlp(const ModelSpec& model, const Plan& plan, const std::string& name)
    : shape_{plan.batch.tokens(), model.ffn_hidden_size},
      gate_up_(plan, name + ".gate_up", {model.hidden_size, 2 * model.ffn_hidden_size, false, k_init_stddev}),
      down_(plan, name + ".down", {model.ffn_hidden_size, model.hidden_size, false, residual_init_stddev(model)}),
      gate_up_values_(plan.arena.reserve<T>("activations", shape_.rows * 2 * shape_.width)),
      inner_(plan.arena.reserve<T>("activations", shape_.rows * shape_.width)) {}

template <class T>
void Mlp<T>::forward(const Pass<T>& pass, const T* x, T* y) const {
  gate_up_.forward(pass, shape_.rows, x, pass.arena.at(gate_up_values_));
  swiglu_forward<T>(shape_, pass.arena.at(gate_up_values_), pass.arena.at(inner_));
  down_.forward(pass, shape_.rows, pass.arena.at(inner_), y);
}

template <class T>
void Mlp<T>::backward(const Pass<T>& pass, const MlpShared<T>& shared, const T* x, const T* dy, T* dx) const {
  T* const dinner = pass.arena.at(shared.dinner);
  T* const dgate_up = pass.arena.at(shared.dgate_up);
  down_.backward(pass, shape_.rows, pass.arena.at(inner_), dy, dinner);
  swiglu_backward<T>(shape_, pass.arena.at(gate_up_values_), dinner, dgate_up);
  gate_up_.backward(pass, shape_.rows, x, dgate_up, dx);
}

template struct MlpShared<float>;
template struct MlpShared<bf16>;
template struct MlpShared<double>;
template class Mlp<float>;
template class Mlp<bf16>;
template class Mlp<double>;

}  // namespace tprimat

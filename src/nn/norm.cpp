#include "nn/norm.h"

namespace tprimat {
namespace {

int64_t add_weight(const ModelSpec& model, const Plan& plan, const std::string& name, double value) {
  Parameter parameter{name, Shard::whole(model.hidden_size, 1), value};
  parameter.counts_in_norm = plan.sharing.tensor_rank == 0;
  parameter.partial_gradient = plan.sharing.sequence_parallel;
  return plan.parameters.add(parameter);
}

}  // namespace

template <class T>
Norm<T>::Norm(const ModelSpec& model, const Plan& plan, const std::string& name)
    : kind_(model.norm),
      rows_(plan.stream_tokens()),
      cols_(model.hidden_size),
      eps_(model.norm_eps),
      weight_(add_weight(model, plan, name + ".weight", 1.0)),
      output_(plan.cheap().reserve<T>("activations", rows_ * cols_)),
      rstd_(plan.kept.reserve<Accum<T>>("activations", rows_)),
      output_is_kept_(plan.recompute == Recompute::none) {
  if (kind_ == NormKind::rms) return;
  bias_ = add_weight(model, plan, name + ".bias", 0.0);
  mean_ = plan.kept.reserve<Accum<T>>("activations", rows_);
}

template <class T>
const T* Norm<T>::forward(const Pass<T>& pass, const T* x) const {
  const OpTimer timer(pass.clock, "norm forward", {0, 2.0 * sizeof(T) * static_cast<double>(rows_ * cols_)});
  T* const y = pass.at(output_);
  if (kind_ == NormKind::rms)
    pass.ops.rmsnorm_forward({rows_, cols_, eps_}, x, pass.weight(weight_), y, pass.at(rstd_));
  else
    pass.ops.layernorm_forward({rows_, cols_, eps_}, x, {pass.weight(weight_), pass.weight(bias_)},
                               {y, pass.at(mean_), pass.at(rstd_)});
  return y;
}

template <class T>
const T* Norm<T>::forward_sum(const Pass<T>& pass, const T* x, const T* branch, T* sum) const {
  const OpTimer timer(pass.clock, "norm forward", {0, 4.0 * sizeof(T) * static_cast<double>(rows_ * cols_)});
  T* const y = pass.at(output_);
  if (kind_ == NormKind::rms)
    pass.ops.add_rmsnorm_forward({rows_, cols_, eps_}, {x, branch, sum}, pass.weight(weight_), y, pass.at(rstd_));
  else
    pass.ops.add_layernorm_forward({rows_, cols_, eps_}, {x, branch, sum}, {pass.weight(weight_), pass.weight(bias_)},
                                   {y, pass.at(mean_), pass.at(rstd_)});
  return y;
}

template <class T>
const T* Norm<T>::output_again(const Pass<T>& pass, const T* x) const {
  return output_is_kept_ ? pass.at(output_) : forward(pass, x);
}

template <class T>
void Norm<T>::backward(const Pass<T>& pass, const T* x, const T* dy, T* dx) const {
  const OpTimer timer(pass.clock, "norm backward", {0, 4.0 * sizeof(T) * static_cast<double>(rows_ * cols_)});
  const T* const weight = pass.weight(weight_);
  if (kind_ == NormKind::rms)
    pass.ops.rmsnorm_backward({rows_, cols_, eps_}, {x, weight, pass.at(rstd_), dy, dx, pass.gradient(weight_)});
  else
    pass.ops.layernorm_backward({rows_, cols_, eps_}, {x, weight, pass.at(mean_), pass.at(rstd_), dy, dx,
                                                       pass.gradient(weight_), pass.gradient(bias_)});
}

template class Norm<float>;
template class Norm<bf16>;
template class Norm<f16>;
template class Norm<double>;

}  // namespace tprimat

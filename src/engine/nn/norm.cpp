#include "nn/norm.h"

#include "base/check.h"

namespace tprimat::engine {
namespace {

int64_t add_weight(const Plan& plan, const ElementRange& planned, Parameter parameter) {
  parameter.counts_in_norm = plan.sharing.tensor_rank == 0;
  parameter.partial_gradient = plan.sharing.sequence_parallel;
  return plan.parameters.add(std::move(parameter), planned);
}

}  // namespace

template <class T>
Norm<T>::Norm(const ModelSpec& model, const Plan& plan, const NormBuffers& buffers, const std::string& name)
    : kind_(model.norm),
      rows_(plan.stream_tokens()),
      cols_(model.hidden_size),
      eps_(model.norm_eps),
      buffers_(buffers),
      weight_(add_weight(plan, buffers.weight, {name + ".weight", Shard::whole(cols_, 1), 1.0})),
      output_is_kept_(plan.recompute == Recompute::none) {
  CHECK(buffers.output.count == rows_ * cols_ && buffers.rstd.count == rows_);
  if (buffers.bias) bias_ = add_weight(plan, *buffers.bias, {name + ".bias", Shard::whole(cols_, 1)});
}

template <class T>
const T* Norm<T>::forward(const Pass<T>& pass, const T* x) const {
  const OpTimer timer(pass.clock, "norm forward", memory_work<T>(rows_, cols_, 2));
  T* const y = pass.at(buffers_.output);
  if (kind_ == NormKind::rms)
    pass.ops.rmsnorm_forward({rows_, cols_, eps_}, x, pass.weight(weight_), y, pass.at(buffers_.rstd));
  else
    pass.ops.layernorm_forward({rows_, cols_, eps_}, x, {pass.weight(weight_), pass.weight(bias_)},
                               {y, pass.at(buffers_.mean), pass.at(buffers_.rstd)});
  return y;
}

template <class T>
const T* Norm<T>::forward_sum(const Pass<T>& pass, const T* x, const T* branch, T* sum) const {
  const OpTimer timer(pass.clock, "norm forward", memory_work<T>(rows_, cols_, 4));
  T* const y = pass.at(buffers_.output);
  if (kind_ == NormKind::rms)
    pass.ops.add_rmsnorm_forward({rows_, cols_, eps_}, {x, branch, sum}, pass.weight(weight_), y,
                                 pass.at(buffers_.rstd));
  else
    pass.ops.add_layernorm_forward({rows_, cols_, eps_}, {x, branch, sum}, {pass.weight(weight_), pass.weight(bias_)},
                                   {y, pass.at(buffers_.mean), pass.at(buffers_.rstd)});
  return y;
}

template <class T>
const T* Norm<T>::output_again(const Pass<T>& pass, const T* x) const {
  return output_is_kept_ ? pass.at(buffers_.output) : forward(pass, x);
}

template <class T>
void Norm<T>::backward(const Pass<T>& pass, const T* x, const T* dy, T* dx) const {
  const OpTimer timer(pass.clock, "norm backward", memory_work<T>(rows_, cols_, 4));
  const T* const weight = pass.weight(weight_);
  if (kind_ == NormKind::rms)
    pass.ops.rmsnorm_backward({rows_, cols_, eps_},
                              {x, weight, pass.at(buffers_.rstd), dy, dx, pass.gradient(weight_)});
  else
    pass.ops.layernorm_backward({rows_, cols_, eps_}, {x, weight, pass.at(buffers_.mean), pass.at(buffers_.rstd), dy,
                                                       dx, pass.gradient(weight_), pass.gradient(bias_)});
}

template class Norm<float>;
template class Norm<bf16>;
template class Norm<f16>;
template class Norm<double>;

}  // namespace tprimat::engine

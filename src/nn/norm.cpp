#include "nn/norm.h"

namespace tprimat {

template <class T>
Norm<T>::Norm(const Plan& plan, const std::string& name, int64_t hidden_size, double eps)
    : shape_{plan.batch.tokens(), hidden_size, eps},
      weight_(plan.parameters.add_vector(name + ".weight", hidden_size, 1.0)),
      output_(plan.arena.reserve<T>("activations", shape_.rows * hidden_size)),
      rstd_(plan.arena.reserve<Accum<T>>("activations", shape_.rows)) {}

template <class T>
const T* Norm<T>::forward(const Pass<T>& pass, const T* x) const {
  rmsnorm_forward<T>(shape_, x, pass.weights + weight_, pass.arena.at(output_), pass.arena.at(rstd_));
  return output(pass);
}

template <class T>
void Norm<T>::backward(const Pass<T>& pass, const T* x, const T* dy, T* dx) const {
  rmsnorm_backward<T>(shape_, {x, pass.weights + weight_, pass.arena.at(rstd_), dy, dx, pass.gradients + weight_});
}

template class Norm<float>;
template class Norm<bf16>;
template class Norm<double>;

}  // namespace tprimat

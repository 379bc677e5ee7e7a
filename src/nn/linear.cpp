#include "nn/linear.h"

#include "ops/elementwise.h"
#include "ops/matmul.h"

namespace tprimat {

template <class T>
Linear<T>::Linear(const Plan& plan, const std::string& name, const LinearShape& shape)
    : shape_(shape),
      weight_(plan.parameters.add_matrix(name + ".weight", shape.outputs, shape.inputs, shape.init_stddev)) {
  if (shape.bias) bias_ = plan.parameters.add_vector(name + ".bias", shape.outputs, 0.0);
}

template <class T>
void Linear<T>::forward(const Pass<T>& pass, int64_t rows, const T* x, T* y) const {
  const auto weight = matrix(pass.weights + weight_, shape_.outputs, shape_.inputs);
  matmul<T, T>(matrix(x, rows, shape_.inputs), transposed(weight), matrix(y, rows, shape_.outputs));
  if (bias_) add_bias(rows, shape_.outputs, pass.weights + *bias_, y);
}

template <class T>
void Linear<T>::backward(const Pass<T>& pass, int64_t rows, const T* x, const T* dy, T* dx) const {
  const auto weight = matrix(pass.weights + weight_, shape_.outputs, shape_.inputs);
  const auto output_gradient = matrix(dy, rows, shape_.outputs);
  matmul<T, Accum<T>>(transposed(output_gradient), matrix(x, rows, shape_.inputs),
                      matrix(pass.gradients + weight_, shape_.outputs, shape_.inputs), true);
  if (bias_) add_column_sums(rows, shape_.outputs, dy, pass.gradients + *bias_);
  matmul<T, T>(output_gradient, weight, matrix(dx, rows, shape_.inputs));
}

template class Linear<float>;
template class Linear<bf16>;
template class Linear<double>;

}  // namespace tprimat

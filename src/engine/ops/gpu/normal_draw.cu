#include "ops/gpu/chunk.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::engine::gpu {
namespace {

__device__ inline double rounded_root(double x) {
#if defined(TPRIMAT_GPU_HOST)
  return std::sqrt(x);
#else
  return __dsqrt_rn(x);
#endif
}

template <class T>
__global__ void __launch_bounds__(k_block) draw_array(int64_t count, NormalDraw draw, T* to) {
  visit_array<1>(count, [&](auto, int64_t i) {
    const double value = normal_value(draw, draw.whole_index(i), [](double x) { return rounded_root(x); });
    to[i] = store<T>(static_cast<float>(value));
  });
}

template <class T>
void draw_normal(int64_t count, const NormalDraw& draw, T* to) {
  if (count > 0) launch(array_launch(count, 1), draw_array<T>, count, draw, to);
}
}  // namespace

void set_ops(OpsByFormat<NormalDrawOps>& ops) {
  ops.set_fast([]<class T>(NormalDrawOps<T>& fast) { fast = {draw_normal<T>, draw_normal<float>}; });
}

}  // namespace tprimat::engine::gpu

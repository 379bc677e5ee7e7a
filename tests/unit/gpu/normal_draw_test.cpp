#include "ops/normal_draw.h"

#include <bit>

#include "ops/gpu/gpu_ops.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

template <class T>
class GpuNormalDraw : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuNormalDraw, GpuTypes);

// A training on a GPU starts from the weights that it has on a processor, to the last bit.
TYPED_TEST(GpuNormalDraw, SameBitsAsOnTheProcessor) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  const auto stream = static_cast<uint64_t>(draws.integers(1, 0, 1 << 30)[0]);
  for (const NormalDraw& draw :
       {NormalDraw{0.0, 0.02, stream, 0, 1, 1, 0}, NormalDraw{0.5, 1.0, stream, 77, 5, 9, 3},
        NormalDraw{0.0, 1.0, stream, int64_t{1} << 40, 4096, 14336, 100}, NormalDraw{1.0, 0.0, stream, 0, 1, 1, 0}})
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{70'001}}) {
      std::vector<T> expected(static_cast<size_t>(count));
      cpu_ops<T>().draw_normal(count, draw, expected.data());
      const auto drawn = DeviceVector<T>::poisoned(count);
      gpu_ops<T>().draw_normal(count, draw, drawn.data());
      EXPECT_EQ(widened(drawn.download()), widened(expected)) << draw.first << " " << count;
    }
}

}  // namespace
}  // namespace tprimat::engine::gpu

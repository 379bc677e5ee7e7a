#include "ops/gpu/warp.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "device/gpu/context.h"
#include "ops/gpu/element.h"
#include "unit/gpu/device_vector.h"

namespace tprimat::engine::gpu {
namespace {

__global__ void sum_blocks(const float* values, float* sums, float* largest) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const float sum = block_sum(values[at]);
  const float most = block_max(values[at]);
  const float twice = block_sum(sum) / static_cast<float>(blockDim.x);  // follows at once on the same shared memory
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = twice;
    largest[blockIdx.x] = most;
  }
}

TEST(GpuWarp, BlocksAddUpAndFindTheirLargest) {
  for (const int threads : {k_warp, 2 * k_warp, 256}) {
    std::vector<float> values(static_cast<size_t>(3 * threads));
    std::iota(values.begin(), values.end(), -100.0f);
    const DeviceVector<float> x(values);
    auto sums = DeviceVector<float>::poisoned(3), largest = DeviceVector<float>::poisoned(3);
    launch({dim3(3), dim3(static_cast<unsigned>(threads)), 0, context().stream}, sum_blocks, x.data(), sums.data(),
           largest.data());
    const auto found = sums.download(), most = largest.download();
    for (size_t b = 0; b < 3; ++b) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(b) * threads;
      EXPECT_FLOAT_EQ(found[b], std::accumulate(first, first + threads, 0.0f));
      EXPECT_EQ(most[b], first[threads - 1]);
    }
  }
}

TEST(GpuWarp, TheLargestOfValuesWithNanIsNan) {
  std::vector<float> values(64, 1.0f);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  const DeviceVector<float> x(values);
  auto sums = DeviceVector<float>::poisoned(1), largest = DeviceVector<float>(std::vector<float>{0.0f});
  launch({dim3(1), dim3(64), 0, context().stream}, sum_blocks, x.data(), sums.data(), largest.data());
  EXPECT_TRUE(std::isnan(largest.download()[0]));
}

__global__ void reverse_warps(const int* values, int* reversed, int* partner) {
  const int at = static_cast<int>(threadIdx.x);
  reversed[at] = shuffle_from(values[at], k_warp - 1 - lane_of_thread());
  partner[at] = shuffle_xor(values[at], 1);
}

TEST(GpuWarp, LanesTakeEachOthersValues) {
  std::vector<int> values(static_cast<size_t>(2 * k_warp));
  std::iota(values.begin(), values.end(), 0);
  const DeviceVector<int> x(values);
  auto reversed = DeviceVector<int>::poisoned(2 * k_warp), partner = DeviceVector<int>::poisoned(2 * k_warp);
  launch({dim3(1), dim3(static_cast<unsigned>(2 * k_warp)), 0, context().stream}, reverse_warps, x.data(),
         reversed.data(), partner.data());
  const auto back = reversed.download(), next = partner.download();
  for (int i = 0; i < 2 * k_warp; ++i) {
    EXPECT_EQ(back[static_cast<size_t>(i)], i / k_warp * k_warp + k_warp - 1 - i % k_warp);
    EXPECT_EQ(next[static_cast<size_t>(i)], i ^ 1);
  }
}

template <class T>
__global__ void round_values(const float* from, T* to, float* back, int count) {
  const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (at >= count) return;
  to[at] = store<T>(from[at]);
  back[at] = load(to[at]);
}

template <class T>
class GpuElement : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuElement, GpuTypes);

// Halves between two neighbours, the largest and smallest numbers, infinite ones and NaN.
const std::vector<float> k_rounded_values = {0.0f,
                                             -0.0f,
                                             1.00390625f,
                                             1.01171875f,
                                             1.00048828125f,
                                             65504.0f,
                                             65519.0f,
                                             65520.0f,
                                             3.4e38f,
                                             1e-8f,
                                             6e-8f,
                                             5.9e-5f,
                                             -1e-40f,
                                             std::numeric_limits<float>::infinity(),
                                             std::numeric_limits<float>::quiet_NaN()};

TYPED_TEST(GpuElement, RoundsAsTheProcessorDoes) {
  using T = TypeParam;
  std::vector<float> values = k_rounded_values;
  for (const double value : random_values(200, 7, 100.0)) values.push_back(static_cast<float>(value));
  const auto count = static_cast<int64_t>(values.size());
  const DeviceVector<float> x(values);
  auto to = DeviceVector<T>::poisoned(count);
  auto back = DeviceVector<float>::poisoned(count);
  launch({dim3(4), dim3(64), 0, context().stream}, round_values<T>, x.data(), to.data(), back.data(), count);
  const auto rounded = to.download();
  const auto widened_back = back.download();
  for (size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<float>(widen(narrow<T>(values[i])));
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(widened_back[i])) << values[i];
    } else {
      EXPECT_EQ(widened_back[i], expected) << values[i];
      EXPECT_EQ(widen(rounded[i]), expected) << values[i];
    }
  }
}

__global__ void scale_in_shared_memory(float* values, float factor) {
  TPRIMAT_DYNAMIC_SHARED(float, kept);
  kept[threadIdx.x] = values[threadIdx.x] * factor;
  __syncthreads();
  values[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
}

TEST(GpuLaunch, SharedMemoryHasTheSizeThatTheLaunchStates) {
  DeviceVector<float> values(std::vector<float>{1, 2, 3, 4});
  launch({dim3(1), dim3(4), 4 * sizeof(float), context().stream}, scale_in_shared_memory, values.data(), 2);
  EXPECT_EQ(values.download(), (std::vector<float>{8, 6, 4, 2}));
}

}  // namespace
}  // namespace tprimat::engine::gpu

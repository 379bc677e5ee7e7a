// What the host shim finds in kernels and in the code around them.
#include "device/gpu/runtime.h"
#if defined(TPRIMAT_GPU_HOST)
#include "base/error.h"
#include "device/gpu/context.h"
#include "ops/gpu/warp.h"
#include "unit/gpu/device_vector.h"

namespace tprimat::engine::gpu {
namespace {

__global__ void miss_a_barrier() {
  if (threadIdx.x % 2 == 0) __syncthreads();
  sync_warp();
}

TEST(GpuHostShim, AMissedBarrierIsAnError) {
  test_device();
  EXPECT_THROW(launch({dim3(1), dim3(8)}, miss_a_barrier), Error);
  EXPECT_THROW(launch({dim3(1), dim3(8)}, miss_a_barrier), Error);  // the first one left nothing behind
}

using GpuHostShimDeathTest = ::testing::Test;

TEST(GpuHostShimDeathTest, TheHostMayNotTouchDeviceMemory) {
  const DeviceVector<float> x(std::vector<float>(10, 1.0f));
  EXPECT_DEATH(x.data()[3] = 2.0f, "the host touches memory of the device");
}

__global__ void write_at(float* values, int64_t at) { values[at] = 1.0f; }

TEST(GpuHostShimDeathTest, KernelsStayInTheirBuffers) {
  const auto x = DeviceVector<float>::poisoned(64);
  launch({dim3(1), dim3(1)}, write_at, x.data(), 63);
  EXPECT_DEATH(launch({dim3(1), dim3(1)}, write_at, x.data(), 64), "beyond its buffer|AddressSanitizer");
}

TEST(GpuHostShim, WorkThatIsPutOffIsDoneWhenSomebodyWaits) {
  auto x = DeviceVector<float>(std::vector<float>{5.0f, 6.0f});
  float seen = 0;
  host::put_work_off(true);
  launch({dim3(1), dim3(1)}, write_at, x.data(), 1);
  check(driver::copy_to_host(&seen, x.data() + 1, sizeof seen, context().stream));
  EXPECT_EQ(seen, 0.0f);
  test_device().finish();
  EXPECT_EQ(seen, 1.0f);
  host::put_work_off(false);
}

}  // namespace
}  // namespace tprimat::engine::gpu
#endif

#include <cstdio>

#include "unit/gpu/device_vector.h"

namespace tprimat::engine::gpu {
namespace {

class OneGpu : public ::testing::Environment {
 public:
  void SetUp() override {
    if (count_devices() > 0) return;
    constexpr const char* k_missing = "this process sees no GPU; docs/gpu.md lists what a machine with one needs";
    std::printf("skipped: %s\n", k_missing);
    GTEST_SKIP() << k_missing;
  }
};
const auto* const k_one_gpu = ::testing::AddGlobalTestEnvironment(new OneGpu);

}  // namespace
}  // namespace tprimat::engine::gpu

#include <cstdio>

#include "unit/gpu/device_vector.h"

namespace tprimat::gpu {
namespace {

class OneGpu : public ::testing::Environment {
 public:
  void SetUp() override {
    if (count_devices() > 0) return;
    std::puts("skipped: this process sees no GPU; docs/gpu.md says what a machine with one needs");
    GTEST_SKIP();
  }
};
const auto* const k_one_gpu = ::testing::AddGlobalTestEnvironment(new OneGpu);

}  // namespace
}  // namespace tprimat::gpu

// Loads the module that runs kernels on the processor, as the program loads a vendor's.
#include "gpu_module/load_gpu_module.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace tprimat::engine {
namespace {

TEST(LoadedGpuModule, DoesOperationsOnItsDevice) {
  const GpuModule& module = load_gpu_module(GpuVendor::host);
  EXPECT_EQ(&module, &load_gpu_module(GpuVendor::host));
  ASSERT_EQ(module.count_devices(), 1);
  const std::unique_ptr<Accelerator> device = module.make_device(0);
  const std::vector<float> values{1, 2, 3, 4};
  const size_t bytes = values.size() * sizeof(float);
  auto* const memory = reinterpret_cast<float*>(device->allocate(bytes));
  device->upload(memory, values.data(), bytes);
  ops_of<float>(module).add(4, memory, memory, memory);
  std::vector<float> doubled(4);
  device->download(doubled.data(), memory, bytes);
  EXPECT_EQ(doubled, (std::vector<float>{2, 4, 6, 8}));
  device->release(reinterpret_cast<std::byte*>(memory), bytes);
}

TEST(LoadedGpuModule, ItsErrorsReachTheProgram) {
  const GpuModule& module = load_gpu_module(GpuVendor::host);
  try {
    module.make_device(7);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), ExitStatus::missing_component);
    EXPECT_NE(std::string(error.what()).find("there is no GPU 7 here: this process sees 1"), std::string::npos);
  }
}

#if defined(TPRIMAT_NO_GPU_MODULE)
TEST(LoadedGpuModule, AModuleThatWasNotBuiltIsNamedWithTheWayToBuildIt) {
  for (const GpuVendor vendor : {GpuVendor::nvd, GpuVendor::amd}) {
    const std::string name = vendor == GpuVendor::nvd ? "nvd" : "amd";
    try {
      load_gpu_module(vendor);
      FAIL();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.status(), ExitStatus::missing_component);
      EXPECT_NE(text.find("libtprimat_" + name + ".so is not in "), std::string::npos) << text;
      EXPECT_NE(text.find("scripts/build_gpu.sh " + name), std::string::npos) << text;
    }
  }
}
#endif

}  // namespace
}  // namespace tprimat::engine

#include "ops/gpu/module.h"

#include "base/build_info.h"
#include "device/gpu/device.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::gpu {

std::unique_ptr<Communicator> make_gpu_communicator(std::unique_ptr<Communicator> host);  // comm stands above ops

}  // namespace tprimat::gpu

extern "C" [[gnu::visibility("default")]] const tprimat::GpuModule* tprimat_gpu_module() {
  using namespace tprimat;
  static const GpuModule module{build_info().version, build_info().revision,      &gpu::count_devices,
                                &gpu::make_device,    &gpu::gpu_ops<float>(),     &gpu::gpu_ops<bf16>(),
                                &gpu::gpu_ops<f16>(), &gpu::make_gpu_communicator, &gpu::product_settings()};
  return &module;
}

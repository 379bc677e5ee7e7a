#include "ops/gpu/module.h"

#include "base/build_info.h"
#include "device/gpu/device.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/fallbacks.h"
#include "ops/gpu/gpu_ops.h"

namespace tprimat::gpu {

std::unique_ptr<Communicator> make_gpu_communicator(std::unique_ptr<Communicator> host);  // comm stands above ops

}  // namespace tprimat::gpu

extern "C" [[gnu::visibility("default")]] const tprimat::GpuModule* tprimat_gpu_module() {
  using namespace tprimat;
  static const GpuModule module{.version = build_info().version,
                                .revision = build_info().revision,
                                .count_devices = &gpu::count_devices,
                                .device_address = &gpu::device_address,
                                .make_device = &gpu::make_device,
                                .f32_ops = &gpu::gpu_ops<float>(),
                                .bf16_ops = &gpu::gpu_ops<bf16>(),
                                .f16_ops = &gpu::gpu_ops<f16>(),
                                .connect = &gpu::make_gpu_communicator,
                                .products = &gpu::product_settings(),
                                .report = &gpu::kernel_report(),
                                .libraries = &gpu::report_libraries};
  return &module;
}

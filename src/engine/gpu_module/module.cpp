#include "gpu_module/gpu_module.h"

#include "base/build_info.h"
#include "comm/gpu/nccl_communicator.h"
#include "device/gpu/device.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/gpu_ops.h"

extern "C" [[gnu::visibility("default")]] const tprimat::engine::GpuModule* tprimat_gpu_module() {
  using namespace tprimat;
  using namespace tprimat::engine;
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

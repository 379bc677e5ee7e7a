#include "train/machinery.h"

#include <fmt/format.h>

#include "base/error.h"
#include "ops/gpu_module.h"

namespace tprimat {
namespace {

void check_places(const GpuModule& module, const LauncherPlace& place) {
  const int devices = module.count_devices();
  if (place.local_size <= devices) return;
  throw Error(Problem{fmt::format("{} ranks of this machine share {} GPU{}: each needs its own", place.local_size,
                                  devices, devices == 1 ? "" : "s"),
                      "--device", fmt::format("start {} rank{} on each machine", devices, devices == 1 ? "" : "s")},
              ExitStatus::missing_component);
}

}  // namespace

Machinery cpu_machinery() {
  const auto not_owned = [](Device*) {};
  return {{&cpu_device(), not_owned}, nullptr, &cpu_ops<float>(), &cpu_ops<bf16>(), &cpu_ops<f16>(), nullptr};
}

Machinery gpu_machinery(const GpuModule& module, int index) {
  std::shared_ptr<Accelerator> device = module.make_device(index);
  return {device, device.get(), module.f32_ops, module.bf16_ops, module.f16_ops, module.connect, module.products};
}

Machinery machinery_of(Platform platform, const LauncherPlace& place) {
  if (platform == Platform::cpu) return cpu_machinery();
  const GpuModule& module = load_gpu_module(platform == Platform::nvd ? GpuVendor::nvd : GpuVendor::amd);
  check_places(module, place);
  return gpu_machinery(module, place.local_rank);
}

}  // namespace tprimat

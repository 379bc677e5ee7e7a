#include "gpu_module/load_gpu_module.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/build_info.h"
#include "base/error.h"
#include "base/program_module.h"

namespace tprimat::engine {
namespace {

struct VendorNames {
  std::string_view module, vendor, see_devices;
};

VendorNames names_of(GpuVendor vendor) {
  switch (vendor) {
    case GpuVendor::nvd:
      return {"nvd", "NVIDIA",
              "nvidia-smi shows whether the driver sees GPUs; a container needs --gpus all, and CUDA_VISIBLE_DEVICES "
              "may hide them"};
    case GpuVendor::amd:
      return {"amd", "AMD",
              "rocm-smi shows whether the driver sees GPUs; a container needs --device /dev/kfd --device /dev/dri, and "
              "ROCR_VISIBLE_DEVICES may hide them"};
    case GpuVendor::host: break;
  }
  return {"gpu_host", "simulated", "the simulated device always has one GPU"};
}

std::string file_of(const VendorNames& names) { return fmt::format("libtprimat_{}.so", names.module); }

const GpuModule& open_module(GpuVendor vendor) {
  const VendorNames names = names_of(vendor);
  const std::string where = fmt::format("{} GPU", names.vendor);
  const ProgramModule library(
      {.name = file_of(names),
       .where = where,
       .wanted_for = fmt::format("training on {} GPUs was requested", names.vendor),
       .when_missing = fmt::format("build the module with scripts/build_gpu.sh {}, which puts it beside the program "
                                   "(docs/gpu.md)",
                                   names.module),
       .when_broken =
           fmt::format("install the missing library, or build the module on this machine: scripts/build_gpu.sh {} "
                       "(docs/gpu.md)",
                       names.module)});
  const GpuModule& module = *library.function<GiveGpuModule>(k_give_gpu_module)();
  if (module.bytes != sizeof(GpuModule))
    throw Error(Problem{fmt::format("{} belongs to another build", file_of(names)), where,
                        "rebuild the program and the module"},
                ExitStatus::missing_component);
  if (module.version != build_info().version || module.revision != build_info().revision)
    throw Error(Problem{fmt::format("{} is version {} ({}), the program is version {} ({})", file_of(names),
                                    module.version, module.revision, build_info().version, build_info().revision),
                        where, "rebuild the program and the module"},
                ExitStatus::missing_component);
  return module;
}

// Once in a process.
const GpuModule& opened_module(GpuVendor vendor) {
  static std::map<GpuVendor, const GpuModule*> opened;
  const GpuModule*& module = opened[vendor];
  if (module == nullptr) module = &open_module(vendor);
  return *module;
}

}  // namespace

const GpuModule* find_gpu_module(GpuVendor vendor) {
  return find_program_module(file_of(names_of(vendor))) ? &opened_module(vendor) : nullptr;
}

const GpuModule& load_gpu_module(GpuVendor vendor) {
  const GpuModule& module = opened_module(vendor);
  const VendorNames names = names_of(vendor);
  if (module.count_devices() == 0)
    throw Error(Problem{"no GPU or driver is visible to this process", fmt::format("{} GPU", names.vendor),
                        std::string(names.see_devices)},
                ExitStatus::missing_component);
  return module;
}

}  // namespace tprimat::engine

#include "ops/gpu_module.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "base/build_info.h"
#include "base/error.h"
#include "base/program_module.h"

namespace tprimat {
namespace {

struct VendorWords {
  std::string_view module, vendor, see_devices;
};

VendorWords words_of(GpuVendor vendor) {
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
  return {"gpu_host", "simulated", "it has one GPU always"};
}

const GpuModule& open_module(GpuVendor vendor) {
  const VendorWords words = words_of(vendor);
  const ProgramModule library(
      {.name = fmt::format("libtprimat_{}.so", words.module),
       .where = fmt::format("{} GPU", words.vendor),
       .wanted_for = fmt::format("the training shall run on {} GPUs", words.vendor),
       .when_missing = fmt::format("build with scripts/build_gpu.sh {}, which puts the module beside the program "
                                   "(docs/gpu.md)",
                                   words.module),
       .when_broken = fmt::format("install what it misses, or build it on this machine: scripts/build_gpu.sh {} "
                                  "(docs/gpu.md)",
                                  words.module)});
  return *library.function<GiveGpuModule>(k_give_gpu_module)();
}

void check_module(const GpuModule& module, const VendorWords& words) {
  const std::string where = fmt::format("{} GPU", words.vendor);
  if (module.version != build_info().version || module.revision != build_info().revision)
    throw Error(Problem{fmt::format("libtprimat_{}.so is of {} {}, the program of {} {}", words.module, module.version,
                                    module.revision, build_info().version, build_info().revision),
                        where, "build the whole program again"},
                ExitStatus::missing_component);
  if (module.count_devices() == 0)
    throw Error(Problem{"this process sees no GPU, or a driver that is missing or too old", where,
                        std::string(words.see_devices)},
                ExitStatus::missing_component);
}

}  // namespace

const GpuModule& load_gpu_module(GpuVendor vendor) {
  static std::map<GpuVendor, const GpuModule*> loaded;
  const GpuModule*& module = loaded[vendor];
  if (module == nullptr) {
    const GpuModule& found = open_module(vendor);
    check_module(found, words_of(vendor));
    module = &found;
  }
  return *module;
}

}  // namespace tprimat

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {
namespace {

std::string_view remedy(Status status) {
  if (status == k_out_of_memory) return "use a smaller micro batch, sequence length or model, or more GPUs";
  if (status == k_no_device)
    return "let this process see a GPU: its driver, its device files in a container, and CUDA_VISIBLE_DEVICES or "
           "ROCR_VISIBLE_DEVICES";
  if (status == k_old_driver)
    return "install a newer driver: this program is built with a toolkit that is newer than the driver";
  return TPRIMAT_GPU_NAME(
      "a kernel may have failed before this call: CUDA_LAUNCH_BLOCKING=1 names the right one, and dmesg what the "
      "driver says",
      "a kernel may have failed before this call: AMD_SERIALIZE_KERNEL=3 names the right one, and dmesg what the "
      "driver says");
}

}  // namespace

void check(Status status, std::source_location where) {
  if (status == k_success) return;
  throw Error(Problem{fmt::format("the GPU's runtime says: {}", status_text(status)),
                      fmt::format("{}:{}", where.file_name(), where.line()), std::string(remedy(status))},
              ExitStatus::work_failed);
}

}  // namespace tprimat::engine::gpu

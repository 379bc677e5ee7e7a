#include <fmt/format.h>

#include <string_view>

#include "base/error.h"
#include "device/gpu/runtime.h"

namespace tprimat::engine::gpu {
namespace {

std::string_view remedy(Status status) {
  if (status == k_out_of_memory) return "use a smaller micro batch, sequence length or model, or more GPUs";
  if (status == k_no_device)
    return "make a GPU visible to this process: check the driver, a container's device files, and CUDA_VISIBLE_DEVICES "
           "or ROCR_VISIBLE_DEVICES";
  if (status == k_old_driver)
    return "install a newer driver: this program was built with a toolkit newer than the driver";
  return TPRIMAT_GPU_NAME(
      "an earlier kernel may have failed: set CUDA_LAUNCH_BLOCKING=1 to find it, and see dmesg for the driver's "
      "message",
      "an earlier kernel may have failed: set AMD_SERIALIZE_KERNEL=3 to find it, and see dmesg for the driver's "
      "message");
}

}  // namespace

void check(Status status, std::source_location where) {
  if (status == k_success) return;
  throw Error(Problem{fmt::format("the GPU runtime reports: {}", status_text(status)),
                      fmt::format("{}:{}", where.file_name(), where.line()), std::string(remedy(status))},
              ExitStatus::work_failed);
}

}  // namespace tprimat::engine::gpu

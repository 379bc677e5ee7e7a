#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "device/gpu/context.h"

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

using WaitClock = std::chrono::steady_clock;
constexpr auto k_between_looks = std::chrono::milliseconds(100);

// A waiting host spins in the runtime's own calls too.
template <class Ask>
Status watch(PeerWatch& peers, const Ask& ask) {
  Status status = ask();
  if (status != k_not_ready) return status;
  for (auto next_look = WaitClock::now() + k_between_looks; status == k_not_ready; status = ask()) {
    std::this_thread::yield();
    if (WaitClock::now() < next_look) continue;
    peers.look();
    next_look = WaitClock::now() + k_between_looks;
  }
  driver::ignore(driver::last_error());  // "not ready" is no failure that a library should find later
  return status;
}

}  // namespace

void check(Status status, std::source_location where) {
  if (status == k_success) return;
  throw Error(Problem{fmt::format("the GPU runtime reports: {}", status_text(status)),
                      fmt::format("{}:{}", where.file_name(), where.line()), std::string(remedy(status))},
              ExitStatus::work_failed);
}

void wait_for(Stream stream, std::source_location where) {
  PeerWatch* const peers = context().peers;
  check(peers == nullptr ? driver::finish_stream(stream) : watch(*peers, [&] { return driver::ask_stream(stream); }),
        where);
}

void wait_for(Event event, std::source_location where) {
  PeerWatch* const peers = context().peers;
  check(peers == nullptr ? driver::finish_event(event) : watch(*peers, [&] { return driver::ask_event(event); }),
        where);
}

}  // namespace tprimat::engine::gpu

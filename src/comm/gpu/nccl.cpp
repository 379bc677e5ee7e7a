#include "comm/gpu/nccl.h"

#include "device/gpu/find_library.h"

namespace tprimat::gpu::nccl {
namespace {

const WantedLibrary& wanted() {
  static const WantedLibrary library = TPRIMAT_GPU_NAME(
      (WantedLibrary{"NCCL",
                     {"libnccl.so.2"},
                     {"nvidia/nccl/lib"},
                     "TPRIMAT_NCCL",
                     "sudo apt-get install libnccl2, or: pip install nvidia-nccl-cu13"}),
      (WantedLibrary{
          "RCCL", {"librccl.so.1", "librccl.so"}, {"torch/lib"}, "TPRIMAT_RCCL", "sudo apt-get install rccl"}));
  return library;
}

template <class Function>
void bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(need_function(library, wanted(), name));
}

NcclCalls load() {
  void* const library = open_library(wanted());
  NcclCalls f{};
  bind(library, "ncclGetUniqueId", f.make_id);
  bind(library, "ncclCommInitRank", f.join);
  bind(library, "ncclCommDestroy", f.leave);
  bind(library, "ncclCommAbort", f.abort);
  bind(library, "ncclCommGetAsyncError", f.async_error);
  bind(library, "ncclGroupStart", f.group_start);
  bind(library, "ncclGroupEnd", f.group_end);
  bind(library, "ncclAllReduce", f.all_reduce);
  bind(library, "ncclAllGather", f.all_gather);
  bind(library, "ncclReduceScatter", f.reduce_scatter);
  bind(library, "ncclBroadcast", f.broadcast);
  bind(library, "ncclSend", f.send);
  bind(library, "ncclRecv", f.receive);
  bind(library, "ncclGetErrorString", f.status_text);
  return f;
}

}  // namespace

const NcclCalls& functions() {
  static const NcclCalls loaded = load();
  return loaded;
}

}  // namespace tprimat::gpu::nccl

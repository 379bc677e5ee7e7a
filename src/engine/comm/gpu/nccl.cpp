#include "comm/gpu/nccl.h"

#include "device/gpu/libraries.h"

namespace tprimat::engine::gpu::nccl {
namespace {

template <class Function>
void bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(need_function(library, rank_library(), name));
}

NcclCalls load() {
  void* const library = open_library(rank_library());
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

}  // namespace tprimat::engine::gpu::nccl

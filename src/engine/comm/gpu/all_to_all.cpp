#include "comm/gpu/nccl.h"

namespace tprimat::engine::gpu::nccl {

// NCCL has a call for this from 2.28 on; the sends and receives of one group go on together, that to itself too.
Status all_to_all(const Blocks& blocks, Group group, Stream stream) {
  const NcclCalls& call = functions();
  const int64_t bytes = static_cast<int64_t>(blocks.count) * blocks.element_bytes;
  Status status = call.group_start();
  for (int rank = 0; rank < blocks.ranks && status == 0; ++rank) {
    const std::byte* const from = static_cast<const std::byte*>(blocks.from) + rank * bytes;
    std::byte* const to = static_cast<std::byte*>(blocks.to) + rank * bytes;
    status = call.send(from, blocks.count, blocks.type, rank, group, stream);
    if (status == 0) status = call.receive(to, blocks.count, blocks.type, rank, group, stream);
  }
  const Status ended = call.group_end();
  return status != 0 ? status : ended;
}

}  // namespace tprimat::engine::gpu::nccl

#include "device/placement.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "telemetry/machine.h"

namespace tprimat::engine {
namespace {

bool bind_to(const std::vector<MemoryNode>& nodes) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const MemoryNode& node : nodes)
    for (const int processor : node.processors) {
      if (processor >= CPU_SETSIZE) return false;
      CPU_SET(processor, &mask);
    }
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0;
}

// Whether this process's memory goes elsewhere than where it is touched first, as by numactl. A container that keeps
// the answer to itself has set none.
bool has_memory_policy() {
#ifdef SYS_get_mempolicy
  int policy = 0;  // MPOL_DEFAULT of <numaif.h>
  return ::syscall(SYS_get_mempolicy, &policy, nullptr, 0, nullptr, 0) == 0 && policy != 0;
#else
  return false;
#endif
}

// False where the kernel or a container refuses.
bool interleave_memory([[maybe_unused]] const std::vector<MemoryNode>& nodes) {
#ifdef SYS_set_mempolicy
  constexpr int k_interleave = 3;  // MPOL_INTERLEAVE of <numaif.h>
  unsigned long mask = 0;
  constexpr int k_bits = 8 * sizeof mask;
  for (const MemoryNode& node : nodes) {
    if (node.number >= k_bits) return false;
    mask |= 1UL << node.number;
  }
  return ::syscall(SYS_set_mempolicy, k_interleave, &mask, k_bits + 1) == 0;
#else
  return false;
#endif
}

}  // namespace

std::vector<MemoryNode> nodes_of_rank(const std::vector<MemoryNode>& nodes, const LocalRank& local) {
  const int64_t count = std::ssize(nodes);
  CHECK(count > 0 && local.ranks > 0 && local.rank < local.ranks);
  if (count % local.ranks != 0 && local.ranks % count != 0) return nodes;
  const int64_t sharing = std::max<int64_t>(local.ranks / count, 1), own = std::max<int64_t>(count / local.ranks, 1);
  const bool have_space = std::ranges::all_of(
      nodes, [&](const MemoryNode& node) { return std::ssize(node.processors) * own >= local.threads * sharing; });
  if (!have_space) return nodes;
  const int64_t first = local.rank * count / local.ranks;
  return {nodes.begin() + first, nodes.begin() + first + own};
}

std::vector<int> bind_rank_to_memory(const LocalRank& local) {
  const std::vector<MemoryNode> nodes = usable_memory_nodes("/", affinity());
  if (nodes.size() < 2 || has_memory_policy()) return {};
  const std::vector<MemoryNode> own = nodes_of_rank(nodes, local);
  if (own.size() > 1 && !interleave_memory(own)) return {};
  if (own.size() < nodes.size() && !bind_to(own)) return {};
  std::vector<int> numbers;
  for (const MemoryNode& node : own) numbers.push_back(node.number);
  return numbers;
}

}  // namespace tprimat::engine

#pragma once

#include <cstdint>
#include <vector>

#include "telemetry/memory_nodes.h"

// Where the ranks of one machine run. A processor reads the memory of its own domain (NUMA node) at full bandwidth, and
// that of the others over the interconnect: docs/performance.md counts the bytes.
namespace tprimat::engine {

// One rank of those on this machine.
struct LocalRank {
  int64_t rank = 0, ranks = 1;
  int64_t threads = 1;  // of each
};

// One domain if ranks share domains (neighbours share the same); several whole ones if there are fewer ranks than
// domains. All if neither number divides the other, or if a domain has fewer processors than its ranks have threads.
std::vector<MemoryNode> nodes_of_rank(const std::vector<MemoryNode>& nodes, const LocalRank& local);

// Keeps this process, and with it the memory that it touches first, in its domains; call before threads start. The
// kernel still chooses among their processors, so that a thread need not wait for one that another program keeps busy.
// Memory of a rank with several domains goes to them page by page in turn. Does nothing where a policy for memory
// is set. Returns the numbers of its domains; empty: nothing was done.
std::vector<int> bind_rank_to_memory(const LocalRank& local);

}  // namespace tprimat::engine

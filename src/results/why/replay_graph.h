#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tprimat::results {

// Operations and what each waits for. A replay begins every operation when all that it waits for has ended, plus its
// delay; operations of one group (a collective, a send with its receive) begin to transfer when the last of the group
// has begun.
class ReplayGraph {
 public:
  // Returns the operation's index, from 0.
  uint32_t add_operation();
  // Operation `later` begins after the end of `earlier`.
  void add_edge(uint32_t earlier, uint32_t later);
  // The members of a group; one operation belongs to at most one (CHECK).
  void add_group(std::span<const uint32_t> members);

  // Orders the operations. Throws Error that names `where` when operations wait for each other in a circle.
  void finish(std::string_view where);

  size_t size() const { return group_of_.size(); }
  std::span<const uint32_t> before(uint32_t operation) const;
  std::span<const uint32_t> group(uint32_t operation) const { return nth_group(group_of_[operation]); }

  // All groups, operations alone as well, in an order in which each follows what it waits for.
  size_t groups() const { return member_begins_.size() - 1; }
  std::span<const uint32_t> nth_group(size_t place) const {
    return {members_.data() + member_begins_[place], members_.data() + member_begins_[place + 1]};
  }

 private:
  struct Edge {
    uint32_t earlier, later;
  };
  void index_edges();
  void index_groups();

  std::vector<Edge> edges_;                           // until finish()
  std::vector<uint32_t> group_of_;                    // by operation
  std::vector<std::vector<uint32_t>> groups_;         // of at least two operations, until finish()
  std::vector<uint32_t> edge_begins_, earlier_;       // by operation: what it waits for
  std::vector<uint32_t> member_begins_{0}, members_;  // of each group, in the order of the replay
};

struct Replay {
  std::vector<double> begin, end;  // seconds, by operation
};

// `durations`: of an operation alone, its length; of a group's member, its transfer. `delays` may be empty: none.
Replay replay(const ReplayGraph& graph, std::span<const double> durations, std::span<const double> delays = {});

}  // namespace tprimat::results

#include "why/replay_graph.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/check.h"
#include "base/error.h"

namespace tprimat::results {
namespace {

constexpr uint32_t k_alone = UINT32_MAX;

}  // namespace

uint32_t ReplayGraph::add_operation() {
  group_of_.push_back(k_alone);
  return static_cast<uint32_t>(group_of_.size() - 1);
}

void ReplayGraph::add_edge(uint32_t earlier, uint32_t later) { edges_.push_back({earlier, later}); }

void ReplayGraph::add_group(std::span<const uint32_t> members) {
  for (const uint32_t member : members) {
    CHECK(group_of_[member] == k_alone);
    group_of_[member] = static_cast<uint32_t>(groups_.size());
  }
  groups_.emplace_back(members.begin(), members.end());
}

std::span<const uint32_t> ReplayGraph::before(uint32_t operation) const {
  return {earlier_.data() + edge_begins_[operation], earlier_.data() + edge_begins_[operation + 1]};
}

void ReplayGraph::index_edges() {
  edge_begins_.assign(size() + 1, 0);
  for (const Edge& edge : edges_) ++edge_begins_[edge.later + 1];
  std::partial_sum(edge_begins_.begin(), edge_begins_.end(), edge_begins_.begin());
  earlier_.resize(edges_.size());
  std::vector<uint32_t> next(edge_begins_.begin(), edge_begins_.end() - 1);
  for (const Edge& edge : edges_) earlier_[next[edge.later]++] = edge.earlier;
}

// Every operation becomes a member of a group, if only of its own.
void ReplayGraph::index_groups() {
  for (uint32_t operation = 0; operation < size(); ++operation)
    if (group_of_[operation] == k_alone) add_group({&operation, 1});
}

// Kahn's order of the groups.
void ReplayGraph::finish(std::string_view where) {
  index_edges();
  index_groups();
  std::vector<uint32_t> waits(groups_.size(), 0), order;
  std::vector<std::vector<uint32_t>> later(groups_.size());
  for (const Edge& edge : edges_) {
    later[group_of_[edge.earlier]].push_back(group_of_[edge.later]);
    ++waits[group_of_[edge.later]];
  }
  edges_ = {};
  for (uint32_t group = 0; group < groups_.size(); ++group)
    if (waits[group] == 0) order.push_back(group);
  for (size_t next = 0; next < order.size(); ++next)
    for (const uint32_t group : later[order[next]])
      if (--waits[group] == 0) order.push_back(group);
  if (order.size() != groups_.size())
    throw Error(Problem{"has operations that wait for each other in a circle", std::string(where),
                        "their order on a worker contradicts the matching of sends and receives"});
  member_begins_.assign(1, 0);
  for (uint32_t place = 0; place < order.size(); ++place) {
    for (const uint32_t member : groups_[order[place]]) members_.push_back(member);
    member_begins_.push_back(static_cast<uint32_t>(members_.size()));
  }
  for (uint32_t place = 0; place < order.size(); ++place)
    for (const uint32_t member : groups_[order[place]]) group_of_[member] = place;
  groups_ = {};
}

Replay replay(const ReplayGraph& graph, std::span<const double> durations, std::span<const double> delays) {
  CHECK(durations.size() == graph.size() && (delays.empty() || delays.size() == graph.size()));
  Replay times{std::vector<double>(graph.size(), 0.0), std::vector<double>(graph.size(), 0.0)};
  for (size_t place = 0; place < graph.groups(); ++place) {
    const auto group = graph.nth_group(place);
    double last = -1e300;
    for (const uint32_t operation : group) {
      double begin = 0;
      bool first = true;
      for (const uint32_t earlier : graph.before(operation)) {
        begin = first ? times.end[earlier] : std::max(begin, times.end[earlier]);
        first = false;
      }
      times.begin[operation] = begin + (delays.empty() ? 0.0 : delays[operation]);
      last = std::max(last, times.begin[operation]);
    }
    for (const uint32_t operation : group) times.end[operation] = last + durations[operation];
  }
  return times;
}

}  // namespace tprimat::results

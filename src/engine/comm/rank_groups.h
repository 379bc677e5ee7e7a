#pragma once

#include <memory>

#include "comm/communicator.h"
#include "spec/train_spec.h"

namespace tprimat::engine {

RankPlace rank_place(const ParallelSpec& layout, int rank);
int rank_at(const ParallelSpec& layout, const RankPlace& place);

// Ranks with the same number share a group. The number is the lowest rank of the group.
struct GroupColors {
  int tensor = 0, context = 0, pipeline = 0, data = 0, model = 0, embedding = 0, key_value = 0;
};
GroupColors group_colors(const TrainSpec& spec, int rank);

// The groups that one rank belongs to; every group holds the ranks that differ in the named places only, in their
// order.
struct RankGroups {
  RankPlace place;
  std::unique_ptr<Communicator> world;
  std::unique_ptr<Communicator> tensor;
  std::unique_ptr<Communicator> context;
  std::unique_ptr<Communicator> pipeline;
  std::unique_ptr<Communicator> data;       // the same weights, other sequences and other parts of them: DP·CP
  std::unique_ptr<Communicator> model;      // one replica of the model: TP·PP
  std::unique_ptr<Communicator> embedding;  // first and last stage: the two copies of a tied embedding; a group of one
                                            // on stages between, and where there is no second copy
  std::unique_ptr<Communicator> key_value;  // tensor ranks that hold the same key/value heads (TP above KV heads)
};

// A group that exchanges what lies in its ranks' devices, from the group of the same ranks that exchanges what lies in
// the host's memory. Collective.
using ConnectDevices = std::unique_ptr<Communicator> (*)(std::unique_ptr<Communicator> host);

// Collective over `world`, which must have no transfer under way, and stays one of the host. What the groups need of
// their devices' memory is taken before this returns, so that the rest is a training's. Throws Error when world
// does not have as many ranks as the layout.
RankGroups make_rank_groups(const TrainSpec& spec, std::unique_ptr<Communicator> world,
                            ConnectDevices connect = nullptr);

}  // namespace tprimat::engine

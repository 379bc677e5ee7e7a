#pragma once

#include <memory>
#include <optional>

#include "comm/messages/message_group.h"

namespace tprimat::engine {

// A sum (or maximum) over the ranks of a group, element by element in the order of the ranks and rounded once. So the
// bits depend neither on a transport's algorithms nor on how the values are cut into messages, and an all-reduce gives
// the bits of a reduce-scatter followed by an all-gather.
//
// Every rank owns one block of the values. It receives the others' versions of that block, adds them up itself, and for
// an all-reduce sends the result to all: each rank sends 2·(R − 1)/R of the values, as with a ring, in two hops rather
// than 2·(R − 1). Blocks are cut into pieces, so that a piece is added up while the next one travels.
struct Reduce {
  CommBuffer values;
  Reduction reduction = Reduction::sum;
  std::optional<CommBuffer> own;  // reduce-scatter: where this rank's block goes. Absent: all-reduce in place
};
std::unique_ptr<MessageWork> make_reduce_work(MessageGroup& group, const Reduce& reduce);

}  // namespace tprimat::engine

#pragma once

#include "comm/rank_groups.h"
#include "nn/op_clock.h"

namespace tprimat::engine {

// The same groups, whose collectives a clock that keeps every call sees: what a rank waited for, of which group, how
// much was moved. `clock` is looked at with each call and outlives the groups; while it is nullptr, calls cost nothing
// more. A transfer counts from its start where nothing else was timed before its end was waited for, else while it was
// waited for. Groups of one rank are left as they are, and the host's group of all ranks where devices are timed.
RankGroups time_groups(RankGroups groups, OpClock* const* clock, bool on_device);

}  // namespace tprimat::engine

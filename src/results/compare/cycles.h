#pragma once

#include "compare/comparison.h"
#include "compare/settle.h"

namespace tprimat::results {

// Confirms the verdict in clock cycles (after the decision tree of nvbench-compare-robust): each run's time per step is
// multiplied by the mean clock of its devices, and the ratio judged again. Fills the pair's cycle ratio and adds the
// finding "clock", which says whether the gap survives. Nothing happens unless every run of both sides recorded a
// clock.
void confirm_in_cycles(Pair& pair, const Contender& reference, const Contender& subject, const Margins& margins);

}  // namespace tprimat::results

#pragma once

#include <string>
#include <vector>

#include "compare/comparison.h"

namespace tprimat::results {

// The facts of a result that define its work: model, sequence length, batch, precision, optimizer and learning rates,
// as bytes. Two runs with the same bytes did the same work by every rule that forbids a comparison.
std::string state_work(const RunResult& result);

// The same plus everything else that the rules for two runs read: data, devices, layout, versions, settings, how memory
// and energy were measured, price and peak. Figures that differ from run to run are not in it.
std::string state_facts(const RunResult& result);

// Indices of runs that stand for all of the participant's: each other states the same facts as one of them.
std::vector<size_t> distinct_runs(const Contender& contender);

// Fills Contender::distinct, which distinct_runs otherwise finds anew.
void note_distinct_runs(Contender& contender);

}  // namespace tprimat::results

#pragma once

#include <string_view>

#include "why/make_ledger.h"
#include "why/step_pieces.h"

namespace tprimat::results {

struct Side;

// Each throws Error with the reason why no ledger is made.

// A side has traces, each of another rank, of the result's model.
void check_traces(const SideInput& input);

// The times of a trace are possible: what one queue runs does not overlap.
void check_pieces(const logs::Trace& trace, const StepPieces& pieces, std::string_view where);

// Both sides train the same model.
void check_same_model(const SideInput& a, const SideInput& b, const Side& prepared_a, const Side& prepared_b);

}  // namespace tprimat::results

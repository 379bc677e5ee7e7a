#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace tprimat::results {

// How the traces of several ranks split a collective's duration. All ranks of a call end it together, so the shortest
// duration among them is the transfer, and what a rank takes beyond it is waiting for the last one to begin. No clocks
// are compared. Durations are in nanoseconds.
struct RankWaiting {
  // By index into Trace::events and Trace::host_events: the first part of the call's span, [begin, begin + waiting).
  // 0 for what is no collective or has no counterpart.
  std::vector<int64_t> events, host_events;
  int64_t waiting = 0;        // sum
  int64_t transfer = 0;       // sum of the matched calls' shortest durations
  int64_t unmatched = 0;      // sum of the durations of collectives without a counterpart
  int64_t matched_calls = 0;  // of these,
  int64_t last_calls = 0;     // in how many this rank began last, by more than k_min_lateness of the others' duration
};

// What the late rank does longer than the others, beside collectives.
struct LongerWork {
  std::string what;          // an operation, a kernel, "no recorded operation"
  double seconds = 0;        // per step, beyond the median of the other ranks
  double other_seconds = 0;  // per step, median of the other ranks
};

struct LateRank {
  size_t index = 0;                // of the traces
  double share = 0;                // of all waiting, the part that ends when this rank begins
  double seconds = 0;              // per step, by which it keeps the others waiting: median over the other ranks
  std::vector<LongerWork> longer;  // longest first, at most five
};

struct Waiting {
  std::vector<RankWaiting> ranks;  // in the order of the traces; their vectors are empty for a single trace
  std::optional<LateRank> late;    // the rank that causes at least half of the waiting
  std::vector<std::string> notes;  // calls without a counterpart and why
};

// The n-th call of an operation and group within a step is the same call on each rank; without step marks, within the
// recording. Calls whose number differs between the ranks stay unmatched, and a note says so.
Waiting match_collectives(std::span<const logs::Trace> ranks);

// All-to-all of unequal sizes: how unequal the ranks' work between dispatch and combine is. Nothing without all-to-all.
struct ExpertImbalance {
  double slowest_over_mean = 1;  // of the time from the end of an all-to-all to the begin of the next, over the ranks
  size_t slowest = 0;            // index of the traces
  double waiting_seconds = 0;    // per step and rank: waiting in all-to-all
};
std::optional<ExpertImbalance> find_expert_imbalance(std::span<const logs::Trace> ranks, const Waiting& waiting);

}  // namespace tprimat::results

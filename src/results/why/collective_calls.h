#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace tprimat::results {

// A call of a collective or a message on one rank.
struct RankCall {
  uint32_t event = 0;  // index into Trace::events, or into Trace::host_events where the trace has none of a GPU
  bool on_host = false;
  int64_t step = -1;  // -1: outside of all, or none is marked
  logs::Span span;
  const logs::CollectiveCall* call = nullptr;
};

bool is_message(std::string_view operation);  // between two ranks, not among a group
bool is_all_to_all(std::string_view operation);

// In the order of their begins: on the GPU where the trace has them there, else on the processor, the outermost of
// nested ones. Where steps are marked, only those within.
std::vector<RankCall> list_calls(const logs::Trace& trace);

// The marks that divide the recording: those of the host, or else of the device.
std::vector<logs::StepMark> dividing_marks(const logs::Trace& trace);

// One call, on the ranks that take part in it and recorded it.
struct MatchedCall {
  struct Member {
    size_t rank = 0;   // index of the traces
    size_t place = 0;  // in this rank's list of calls
  };
  std::vector<Member> members;
};

struct MatchedCalls {
  std::vector<std::vector<RankCall>> calls;  // by rank
  std::vector<MatchedCall> matched;          // of at least two members
  std::vector<std::string> notes;
};

MatchedCalls match_calls(std::span<const logs::Trace> ranks);

}  // namespace tprimat::results

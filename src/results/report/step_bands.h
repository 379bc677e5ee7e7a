#pragma once

#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace tprimat::results {

// A stretch of a lane, ns.
struct LanePiece {
  logs::Span span;
  std::string_view group;        // what gives it its colour
  uint32_t name = logs::k_none;  // index into Trace::names
  int64_t layer = -1;            // of a band of layers
  int64_t events = 1;
};

// The structure of a step: forward, backward, optimizer, and its layers, on the host and as their kernels run.
struct StepBands {
  std::vector<LanePiece> phases, layers, device_layers;
};

// Layers are those that the trace states, else the modules of PyTorch that are called like one: "DecoderLayer_3".
StepBands find_bands(const logs::Trace& trace, const logs::Span& window);

}  // namespace tprimat::results

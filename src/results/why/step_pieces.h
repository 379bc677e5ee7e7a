#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "trace/kernel_classes.h"
#include "trace/trace.h"
#include "why/step_windows.h"
#include "why/waiting.h"

namespace tprimat::results {

// What a moment of a step belongs to.
enum class Moment : uint8_t {
  compute,
  communication,    // exposed
  waiting,          // for another rank
  copy,             // exposed, by a copy engine
  data,             // nothing ran; the host waited for input
  synchronisation,  // nothing ran; the host waited for the device, copied, or allocated memory
  collection,       // nothing ran; the host collected garbage
  host,             // nothing ran; the host did anything else, mostly Python
  first,            // the same, before the first work of a step
  last,             // the same, after the last work of a step
  stall,            // an operation of the processor stood still: other programs ran
  latency,          // nothing ran, though the next kernel had been launched
  idle              // nothing ran, and the trace does not tell why
};

// An interval of a step, in whole nanoseconds.
struct Piece {
  logs::Span span;
  Moment moment = Moment::compute;
  uint32_t event = logs::k_none;  // what ran, or what ended the gap: index into events, without a GPU into host_events
};

// The steps of one rank, each moment once: the pieces fill the windows without overlap.
struct StepPieces {
  std::optional<int32_t> device;  // absent: the processor computes, and pieces refer to host_events
  std::vector<StepWindow> windows;
  std::vector<Piece> pieces;               // in time's order
  std::vector<logs::KernelClass> classes;  // of each of these events
  int64_t busy = 0;                        // ns in windows in which the device worked
  int64_t hidden_communication = 0;        // ns of collectives during which something was computed
};

// By the names of the kernel and of the operation that launched it; what the copy engines do is a copy.
logs::KernelClass class_of_work(const logs::Trace& trace, const logs::GpuEvent& event);

// On a GPU a moment belongs to a kernel (a product before attention, convolutions, other kernels, the earlier begun
// first), else to a collective, else to a copy, else to what the launching thread did. On the processor it belongs to
// the innermost operation of any thread, in the same order. Throws Error where the trace has no steps.
StepPieces cut_steps(const logs::Trace& trace, const RankWaiting* waiting, std::string_view where);

}  // namespace tprimat::results

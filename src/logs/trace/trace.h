#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/intervals.h"

namespace tprimat::logs {

inline constexpr uint32_t k_none = UINT32_MAX;  // no index

enum class GpuEventKind : uint8_t { kernel, memory_copy, memory_set };

// Something that ran on a GPU.
struct GpuEvent {
  Span span;
  uint32_t name = 0;  // index into Trace::names
  int32_t device = 0;
  GpuEventKind kind = GpuEventKind::kernel;
  int32_t stream = 0;            // queue, as the file numbers it
  uint32_t launcher = k_none;    // index into Trace::host_events: the operation that launched it
  int64_t launched = -1;         // ns, end of the call that launched it; -1: unknown
  uint32_t collective = k_none;  // index into Trace::collectives
};

// "ProfilerStep#12": the interval of a training step, on the host (device is absent) or as its work ran on the device.
struct StepMark {
  int64_t step = 0;
  std::optional<int32_t> device;
  Span span;
};

enum class HostEventKind : uint8_t {
  operation,   // of PyTorch or of our own trainer
  runtime,     // a call of CUDA, HIP or the driver: launch, synchronisation, allocation
  annotation,  // a range that the program named: "enumerate(DataLoader)...", "Optimizer.step#AdamW.step"
  python,      // a function of Python
};

enum class Phase : uint8_t { unknown, forward, recompute, backward, optimizer, data, evaluation, checkpoint };

// Something that a thread of the processor did.
struct HostEvent {
  Span span;
  uint32_t name = 0;    // index into Trace::names
  uint32_t thread = 0;  // from 0, in the order in which they occur
  HostEventKind kind = HostEventKind::operation;
  Phase phase = Phase::unknown;
  uint32_t shapes = k_none;      // index into Trace::shapes
  uint32_t collective = k_none;  // index into Trace::collectives
  int32_t layer = -1;            // where the trace states it: "args": {"layer": 3}
  int64_t flops = 0, bytes = 0;  // where the trace states them: "args": {"flops": 1, "bytes": 1}
};

// What a call of a collective moves among whom: "all_reduce", "dp", bytes of one rank's input.
struct CollectiveCall {
  std::string operation, group;
  int64_t bytes = 0, group_size = 0;  // 0: unknown

  auto operator<=>(const CollectiveCall&) const = default;
};

// What a profiler recorded of one process.
struct Trace {
  std::vector<std::string> names;           // of all events, each once
  std::vector<std::string> shapes;          // of operations' inputs, "[2048,4096] [4096,14336] bf16", each once
  std::vector<CollectiveCall> collectives;  // each once
  std::vector<GpuEvent> events;
  std::vector<HostEvent> host_events;              // read only on request
  std::map<uint32_t, std::string> stated_classes;  // of names, where the trace states an operation's class
  std::vector<StepMark> marks;
  std::map<int64_t, std::string> device_names;  // every GPU that the process saw, by its id
  std::optional<int64_t> rank, world_size;
  std::optional<int64_t> base_unix_nanoseconds;  // adds to all times, where the file tells it
  std::vector<std::string> notes;                // what to know before trusting the figures
  int64_t all_events = 0;                        // of the file, those of the host included
  int64_t unusable_events = 0;                   // GPU events without a usable begin or duration
};

enum class TraceContent {
  gpu,         // memory is that of the GPU events alone
  host,        // also the operations of the processor
  everything,  // also calls of the runtime, annotations, Python's functions, who launched what, shapes, collectives
};

// A trace of any format, recognised by its content. Throws Error with the place for other and for damaged files.
Trace read_trace(std::string_view bytes, std::string_view where, TraceContent content);
Trace read_trace(const std::filesystem::path& file, TraceContent content);

// Steps where the trace marks none: repeated sequences of GPU work that the optimizer's kernels end. Empty where
// nothing repeats.
std::vector<StepMark> find_steps(const Trace& trace);

// Phases of host events where the trace states none, from the names of operations and annotations and their nesting.
void find_phases(Trace& trace);

}  // namespace tprimat::logs

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/intervals.h"

namespace tprimat::logs {

enum class GpuEventKind : uint8_t { kernel, memory_copy, memory_set };

// Something that ran on a GPU.
struct GpuEvent {
  Span span;
  uint32_t name = 0;  // index into ChromeTrace::names
  int32_t device = 0;
  GpuEventKind kind = GpuEventKind::kernel;
};

// "ProfilerStep#12": the interval of a training step, on the host (device is absent) or as its work ran on the device.
struct StepMark {
  int64_t step = 0;
  std::optional<int32_t> device;
  Span span;
};

// Something that a thread of the processor did.
struct HostEvent {
  Span span;
  uint32_t name = 0;    // index into ChromeTrace::names
  uint32_t thread = 0;  // from 0, in the order in which they occur
};

// The GPU part of a Chrome trace of the PyTorch profiler (Kineto).
struct ChromeTrace {
  std::vector<std::string> names;  // of GPU events, each once
  std::vector<GpuEvent> events;
  std::vector<HostEvent> host_events;              // operations; read only on request
  std::map<uint32_t, std::string> stated_classes;  // of names, where the trace states an operation's class
  std::vector<StepMark> marks;
  std::map<int64_t, std::string> device_names;  // deviceProperties: every GPU that the process saw, by its id
  std::optional<int64_t> rank, world_size;      // distributedInfo
  int64_t all_events = 0;                       // of the trace, those of the host included
  int64_t unusable_events = 0;                  // GPU events without a usable begin or duration
};

enum class TraceContent {
  gpu,   // memory is that of the GPU events alone
  host,  // also the operations of the processor
};

// JSON, plain or gzip; an object with "traceEvents" or the bare array of events. Read as a stream. Throws Error with
// the byte for text that is not JSON or ends early, and for JSON that is not a trace.
ChromeTrace read_chrome_trace(std::string_view bytes, std::string_view where, TraceContent content = TraceContent::gpu);

// "4203669603187.439" microseconds, exactly, in nanoseconds; nothing beyond +-73 years, where sums could overflow.
std::optional<int64_t> parse_microseconds(std::string_view text);

}  // namespace tprimat::logs

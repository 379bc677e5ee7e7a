#pragma once

#include <optional>
#include <vector>

#include "text/fields.h"
#include "trace/trace.h"
#include "trace/trace_summary.h"

namespace tprimat::logs {

// A step as the program marked it.
struct HostStep {
  int64_t step = 0;
  double seconds = 0.0, busy_seconds = 0.0;

  static constexpr auto fields() {
    using S = HostStep;
    return field_list(field("step", &S::step, "number of the profiler's step mark"),
                      field("seconds", &S::seconds, "length of the mark; the profiler lengthens it"),
                      field("busy_seconds", &S::busy_seconds, "in which any thread was in an operation"));
  }
};

// What an operation of this name does: as the trace states it, else by the name.
KernelClass class_of_operation(const Trace& trace, uint32_t name);

// The processor's time by operation. Operations nest: an operation's own time excludes that of operations within it on
// the same thread.
struct HostSummary {
  int64_t threads = 0, calls = 0;
  double span_seconds = 0.0, busy_seconds = 0.0;
  std::vector<ClassTotal> classes;      // longest first
  std::vector<KernelTotal> operations;  // longest first
  std::vector<HostStep> steps;

  static constexpr auto fields() {
    using H = HostSummary;
    return field_list(field("threads", &H::threads, "that ran operations"),
                      field("calls", &H::calls, "operations that ran"),
                      field("span_seconds", &H::span_seconds, "from the first begin to the last end"),
                      field("busy_seconds", &H::busy_seconds, "in which any thread was in an operation"),
                      field("classes", &H::classes, "own time by class, longest first"),
                      field("operations", &H::operations, "own time by operation, longest first"),
                      field("steps", &H::steps, "each step that the trace marks"));
  }
};

// Of a trace read with TraceContent::host; nothing for one without operations of the processor.
std::optional<HostSummary> summarise_host(const Trace& trace);

}  // namespace tprimat::logs

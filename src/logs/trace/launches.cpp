#include "trace/launches.h"

#include <algorithm>
#include <string>

#include "trace/kernel_classes.h"
#include "trace/kineto_event.h"
#include "trace/nesting.h"
#include "trace/trace_index.h"

namespace tprimat::logs {
namespace {

using Number = LaunchNumbers::Number;

std::vector<Number> by_number(std::vector<Number> numbers) {
  std::stable_sort(numbers.begin(), numbers.end(),
                   [](const Number& a, const Number& b) { return a.number < b.number; });
  return numbers;
}

uint32_t find_number(const std::vector<Number>& sorted, int64_t number) {
  const auto found =
      std::lower_bound(sorted.begin(), sorted.end(), number, [](const Number& a, int64_t b) { return a.number < b; });
  return found == sorted.end() || found->number != number ? k_none : found->host_event;
}

// What was open on a call's thread when the call began.
struct LaunchContext {
  uint32_t operation = k_none;   // the innermost
  uint32_t collective = k_none;  // of the innermost operation that states one
};

// Goes through the operations and calls of each thread by begin, and keeps the open operations on a stack.
class ContextFinder {
 public:
  explicit ContextFinder(const Trace& trace) : events_(trace.host_events) {}

  // By host event; only those of calls are filled.
  std::vector<LaunchContext> find() {
    const std::vector<uint32_t> order = order_by_nesting(events_, [](const HostEvent& event) {
      return event.kind == HostEventKind::operation || event.kind == HostEventKind::runtime;
    });
    std::vector<LaunchContext> found(events_.size());
    std::vector<uint32_t> open;
    uint32_t thread = k_none;
    for (const uint32_t i : order) {
      if (events_[i].thread != thread) open.clear();
      thread = events_[i].thread;
      while (!open.empty() && events_[open.back()].span.end < events_[i].span.begin) open.pop_back();
      if (events_[i].kind == HostEventKind::runtime)
        found[i] = context_of(open, events_[i]);
      else
        open.push_back(i);
    }
    return found;
  }

 private:
  LaunchContext context_of(const std::vector<uint32_t>& open, const HostEvent& call) const {
    LaunchContext found;
    for (auto each = open.rbegin(); each != open.rend(); ++each) {
      const HostEvent& operation = events_[*each];
      if (operation.span.end < call.span.begin) continue;
      if (found.operation == k_none) found.operation = *each;
      if (operation.collective == k_none) continue;
      found.collective = operation.collective;
      break;
    }
    return found;
  }

  const std::vector<HostEvent>& events_;
};

// Collectives whose arguments the file does not state: from the names of the kernel and of its launcher.
class CollectiveNames {
 public:
  explicit CollectiveNames(Trace& trace) : trace_(trace), collectives_(trace.collectives) {
    for (const std::string& name : trace.names)
      is_collective_.push_back(classify_kernel(name) == KernelClass::collective);
  }

  void enter(GpuEvent& event, uint32_t around) {
    const bool is_collective = event.kind == GpuEventKind::kernel && is_collective_[event.name];
    if (!is_collective || event.collective != k_none) return;
    event.collective = around;
    if (event.collective != k_none) return;
    std::string operation = collective_operation(trace_.names[event.name]);
    if (operation.empty() && event.launcher != k_none)
      operation = collective_operation(trace_.names[trace_.host_events[event.launcher].name]);
    if (!operation.empty()) event.collective = collectives_.find({std::move(operation), "", 0, 0});
  }

 private:
  Trace& trace_;
  std::vector<bool> is_collective_;  // by name
  CollectiveIndex collectives_;
};

}  // namespace

void link_launches(Trace& trace, const LaunchNumbers& numbers) {
  const std::vector<Number> calls = by_number(numbers.calls), operations = by_number(numbers.operations);
  const std::vector<LaunchContext> contexts = ContextFinder(trace).find();
  CollectiveNames collectives(trace);
  for (size_t i = 0; i < trace.events.size(); ++i) {
    GpuEvent& event = trace.events[i];
    const int64_t correlation = numbers.correlations[i], external = numbers.externals[i];
    const uint32_t call = correlation > 0 ? find_number(calls, correlation) : k_none;
    LaunchContext around;
    if (call != k_none) {
      around = contexts[call];
      event.launched = trace.host_events[call].span.end;
    }
    event.launcher = around.operation;
    // Some files repeat the correlation as the operation's number, where it means nothing.
    if (event.launcher == k_none && external > 0 && external != correlation) {
      event.launcher = find_number(operations, external);
      if (event.launcher != k_none) around.collective = trace.host_events[event.launcher].collective;
    }
    collectives.enter(event, around.collective);
  }
}

}  // namespace tprimat::logs

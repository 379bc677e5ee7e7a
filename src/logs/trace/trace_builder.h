#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/launches.h"
#include "trace/trace.h"
#include "trace/trace_index.h"

namespace tprimat::logs {

// A step's number in the name of a range: "ProfilerStep#12", "step 12", "train_step_12", "iteration 12".
std::optional<int64_t> step_of_range(std::string_view name);

// Fills a trace from the records of a profiler in any order: keeps what the content asks for, each name once, and
// finds who launched what. Times in ns.
class TraceBuilder {
 public:
  explicit TraceBuilder(TraceContent content)
      : content_(content), names_(trace_.names), shapes_(trace_.shapes), collectives_(trace_.collectives) {}
  TraceBuilder(const TraceBuilder&) = delete;
  TraceBuilder& operator=(const TraceBuilder&) = delete;

  bool keeps_calls() const { return content_ == TraceContent::everything; }

  // Work of a GPU; correlation: the number that the launching call has too.
  struct Work {
    std::optional<Span> span;  // none: unusable
    std::string_view name;
    int64_t device = 0, stream = 0;
    GpuEventKind kind = GpuEventKind::kernel;
    std::optional<int64_t> correlation;
  };
  void add_work(const Work& work);

  // A call of the runtime, the driver or the communication library.
  struct Call {
    std::optional<Span> span;
    std::string_view name;
    int64_t thread = 0;
    std::optional<int64_t> correlation;
  };
  void add_call(const Call& call);

  // A range that the program named. Steps become marks; "aten::mm, seq = 5, op_id = 8, sizes = [[2, 3], [3, 4]]" is an
  // operation with shapes.
  void add_range(std::optional<Span> span, std::string_view name, int64_t thread);

  Trace& trace() { return trace_; }
  Trace finish();

  // Two times of a record; nothing for an end before the begin, and for times where sums could overflow.
  static std::optional<Span> span_of(int64_t begin, int64_t end);

 private:
  uint32_t index_of_name(std::string_view name);
  uint32_t index_of_thread(int64_t thread);
  uint32_t index_of_shapes(std::string_view name);
  uint32_t index_of_collective(std::string_view name);
  uint32_t add_host_event(const Span& span, std::string_view name, int64_t thread, HostEventKind kind);
  void number_plain_steps();

  TraceContent content_;
  Trace trace_;
  TextIndex names_, shapes_;
  CollectiveIndex collectives_;
  std::unordered_map<int64_t, uint32_t> threads_;
  LaunchNumbers numbers_;
  std::vector<std::pair<uint32_t, HostEventKind>> kinds_;  // of host events, once the launches are linked
  std::vector<Span> plain_steps_;                          // ranges that are called "step", without a number
};

}  // namespace tprimat::logs

#include "why/step_pieces.h"

#include <algorithm>
#include <functional>
#include <map>

#include "trace/host_summary.h"
#include "why/host_states.h"
#include "why/sweep.h"

namespace tprimat::results {
namespace {

using logs::GpuEvent;
using logs::GpuEventKind;
using logs::KernelClass;
using logs::Span;
using logs::Trace;

// Which of several at once has the moment.
uint8_t rank_of(KernelClass kernel_class) {
  switch (kernel_class) {
    case KernelClass::matmul: return 0;
    case KernelClass::attention: return 1;
    case KernelClass::convolution: return 2;
    case KernelClass::collective: return 4;
    default: return 3;
  }
}
constexpr uint8_t k_collective_rank = 4, k_copy_rank = 5, k_enclosing_rank = 6, k_data_rank = 7;

std::vector<KernelClass> classes_on_gpu(const Trace& trace) {
  std::map<std::pair<uint32_t, uint32_t>, KernelClass> known;  // by name and operation
  std::vector<KernelClass> classes;
  classes.reserve(trace.events.size());
  for (const GpuEvent& event : trace.events) {
    if (event.kind != GpuEventKind::kernel) {
      classes.push_back(KernelClass::copy);
      continue;
    }
    const uint32_t operation =
        event.launcher < trace.host_events.size() ? trace.host_events[event.launcher].name : logs::k_none;
    const auto [place, is_new] = known.try_emplace({event.name, operation}, KernelClass::other);
    if (is_new) place->second = class_of_work(trace, event);
    classes.push_back(place->second);
  }
  return classes;
}

std::vector<KernelClass> classes_on_processor(const Trace& trace) {
  std::vector<std::optional<KernelClass>> known(trace.names.size());
  std::vector<KernelClass> classes;
  classes.reserve(trace.host_events.size());
  for (const logs::HostEvent& event : trace.host_events) {
    std::optional<KernelClass>& each = known[event.name];
    if (!each) each = logs::class_of_operation(trace, event.name);
    classes.push_back(event.collective != logs::k_none ? KernelClass::collective : *each);
  }
  return classes;
}

Span whole(const std::vector<StepWindow>& windows) { return {windows.front().span.begin, windows.back().span.end}; }

// The parts of collectives that wait for another rank.
logs::IntervalSet waits_of(const Trace& trace, const RankWaiting* waiting, bool on_gpu) {
  if (waiting == nullptr) return {};
  const std::vector<int64_t>& lengths = on_gpu ? waiting->events : waiting->host_events;
  std::vector<Span> spans;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t begin = on_gpu ? trace.events[i].span.begin : trace.host_events[i].span.begin;
    if (lengths[i] > 0) spans.push_back({begin, begin + lengths[i]});
  }
  return unite(std::move(spans));
}

void for_communication(const logs::IntervalSet& waits, const Span& span, uint32_t event,
                       const std::function<void(const Piece&)>& add) {
  int64_t at = span.begin;
  for (const Span& wait : clip(waits, span)) {
    add({{at, wait.begin}, Moment::communication, event});
    add({wait, Moment::waiting, event});
    at = wait.end;
  }
  add({{at, span.end}, Moment::communication, event});
}

class GpuCutter {
 public:
  GpuCutter(const Trace& trace, StepPieces& cut, const RankWaiting* waiting)
      : trace_(trace), cut_(cut), waits_(waits_of(trace, waiting, cut.device.has_value())), states_(trace) {}

  void cut() {
    std::vector<SweepItem> items;
    for (uint32_t i = 0; i < trace_.events.size(); ++i) {
      const GpuEvent& event = trace_.events[i];
      if (event.device != *cut_.device) continue;
      const uint8_t rank = event.kind == GpuEventKind::kernel ? rank_of(cut_.classes[i]) : k_copy_rank;
      items.push_back({event.span, i, rank});
    }
    sweep(std::move(items), whole(cut_.windows),
          {[this](const Span& span, const SweepItem& item) { take(span, item); },
           [this](const Span& gap, const SweepItem* next) { fill(gap, next); }});
  }

 private:
  void take(const Span& span, const SweepItem& item) {
    if (item.rank != k_collective_rank) {
      add({span, item.rank == k_copy_rank ? Moment::copy : Moment::compute, item.event});
      return;
    }
    for_communication(waits_, span, item.event, [this](const Piece& piece) { add(piece); });
  }

  void fill(const Span& gap, const SweepItem* next) {
    if (next == nullptr) {
      for (const Piece& piece : states_.split(gap, std::nullopt, logs::k_none))
        add({piece.span, trace_.host_events.empty() ? Moment::idle : piece.moment, piece.event});
      return;
    }
    const GpuEvent& event = trace_.events[next->event];
    if (event.launched < 0) {
      add({gap, Moment::idle, next->event});
      return;
    }
    const int64_t launched = std::clamp(event.launched, gap.begin, gap.end);
    std::optional<uint32_t> thread;
    if (event.launcher < trace_.host_events.size()) thread = trace_.host_events[event.launcher].thread;
    for (const Piece& piece : states_.split({gap.begin, launched}, thread, next->event)) add(piece);
    add({{launched, gap.end}, Moment::latency, next->event});
  }

  void add(const Piece& piece) {
    if (piece.span.length() <= 0) return;
    if (!cut_.pieces.empty()) {
      Piece& last = cut_.pieces.back();
      if (last.span.end == piece.span.begin && last.event == piece.event && last.moment == piece.moment) {
        last.span.end = piece.span.end;
        return;
      }
    }
    cut_.pieces.push_back(piece);
  }

  const Trace& trace_;
  StepPieces& cut_;
  logs::IntervalSet waits_;
  HostStates states_;
};

// Operations that make another view of a tensor or allocate one, and compute nothing.
bool computes_nothing(std::string_view name) {
  static constexpr auto k_names = std::to_array<std::string_view>(
      {"view",    "as_strided", "empty",          "empty_strided", "empty_like",   "detach",
       "detach_", "t",          "transpose",      "permute",       "reshape",      "expand",
       "select",  "slice",      "unsqueeze",      "squeeze",       "alias",        "unbind",
       "split",   "chunk",      "narrow",         "_unsafe_view",  "resolve_conj", "resolve_neg",
       "resize_", "set_",       "_reshape_alias", "unflatten",     "flatten",      "expand_as",
       "view_as", "is_nonzero"});
  if (name.starts_with("aten::")) name.remove_prefix(6);
  return std::ranges::find(k_names, name) != k_names.end();
}

// "gloo:all_reduce": a range on a thread of the communication library, while others wait for it.
bool runs_beside(const Trace& trace, const StepPieces& cut, uint32_t event) {
  return trace.host_events[event].kind == logs::HostEventKind::annotation &&
         cut.classes[event] == KernelClass::collective;
}

class ProcessorCutter {
 public:
  ProcessorCutter(const Trace& trace, StepPieces& cut, const RankWaiting* waiting)
      : trace_(trace), cut_(cut), waits_(waits_of(trace, waiting, cut.device.has_value())), states_(trace) {}

  void cut() {
    std::vector<SweepItem> items = operations();
    for (uint32_t i = 0; i < trace_.host_events.size(); ++i)
      if (runs_beside(trace_, cut_, i)) items.push_back({trace_.host_events[i].span, i, k_collective_rank});
    sweep(std::move(items), whole(cut_.windows),
          {[this](const Span& span, const SweepItem& item) { take(span, item); },
           [this](const Span& gap, const SweepItem* next) {
             const uint32_t event = next == nullptr ? logs::k_none : next->event;
             for (const Piece& piece : states_.split(gap, std::nullopt, event)) add(piece);
           }});
  }

 private:
  // The host's time around operations goes with the one that follows on its thread: before a recomputed one it is
  // recomputation's, which runs inside an operation of the backward pass.
  std::vector<SweepItem> operations() const {
    const auto is_operation = [](const logs::HostEvent& event) { return event.kind == logs::HostEventKind::operation; };
    std::vector<SweepItem> items;
    for (const HostStretch& each : innermost_events(trace_, is_operation))
      items.push_back({each.span, each.event, rank(each)});
    for (size_t i = items.size(); i-- > 1;) {
      SweepItem& each = items[i - 1];
      const bool same_thread = trace_.host_events[each.event].thread == trace_.host_events[items[i].event].thread;
      if (each.rank == k_enclosing_rank && same_thread) each.event = items[i].event;
    }
    return items;
  }

  // An operation around others does nothing itself, nor does a view: its own time is the host's.
  uint8_t rank(const HostStretch& stretch) const {
    const KernelClass kernel_class = cut_.classes[stretch.event];
    if (trace_.host_events[stretch.event].phase == logs::Phase::data) return k_data_rank;
    const std::string& name = trace_.names[trace_.host_events[stretch.event].name];
    if (kernel_class == KernelClass::other && (stretch.encloses || computes_nothing(name))) return k_enclosing_rank;
    return rank_of(kernel_class);
  }

  void take(const Span& span, const SweepItem& item) {
    if (item.rank == k_data_rank || item.rank == k_enclosing_rank) {
      add({span, item.rank == k_data_rank ? Moment::data : Moment::host, item.event});
    } else if (item.rank == k_collective_rank) {
      for_communication(waits_, span, item.event, [this](const Piece& piece) { add(piece); });
    } else {
      add({span, Moment::compute, item.event});
    }
  }

  void add(const Piece& piece) {
    if (piece.span.length() > 0) cut_.pieces.push_back(piece);
  }

  const Trace& trace_;
  StepPieces& cut_;
  logs::IntervalSet waits_;
  HostStates states_;
};

// Communication's union less its exposed part.
void measure_device(const Trace& trace, StepPieces& cut) {
  std::vector<Span> collectives;
  if (cut.device) {
    for (size_t i = 0; i < trace.events.size(); ++i)
      if (trace.events[i].device == *cut.device && cut.classes[i] == KernelClass::collective)
        collectives.push_back(trace.events[i].span);
  } else {
    for (size_t i = 0; i < trace.host_events.size(); ++i)
      if (trace.host_events[i].kind <= logs::HostEventKind::annotation && cut.classes[i] == KernelClass::collective)
        collectives.push_back(trace.host_events[i].span);
  }
  cut.hidden_communication = measure(clip(logs::unite(std::move(collectives)), whole(cut.windows)));
  for (const Piece& piece : cut.pieces) {
    const bool exposed = piece.moment == Moment::communication || piece.moment == Moment::waiting;
    if (exposed) cut.hidden_communication -= piece.span.length();
    if (exposed || piece.moment == Moment::compute || piece.moment == Moment::copy) cut.busy += piece.span.length();
  }
}

}  // namespace

KernelClass class_of_work(const Trace& trace, const GpuEvent& event) {
  if (event.kind != GpuEventKind::kernel) return KernelClass::copy;
  const std::string& name = trace.names[event.name];
  return event.launcher < trace.host_events.size()
             ? logs::classify_kernel(name, trace.names[trace.host_events[event.launcher].name])
             : logs::classify_kernel(name);
}

StepPieces cut_steps(const Trace& trace, const RankWaiting* waiting, std::string_view where) {
  StepPieces cut;
  cut.device = busiest_device(trace);
  cut.windows = find_windows(trace, cut.device, where);
  cut.classes = cut.device ? classes_on_gpu(trace) : classes_on_processor(trace);
  if (cut.device)
    GpuCutter(trace, cut, waiting).cut();
  else
    ProcessorCutter(trace, cut, waiting).cut();
  measure_device(trace, cut);
  return cut;
}

}  // namespace tprimat::results

#include "trace/trace_builder.h"

#include <algorithm>
#include <array>
#include <limits>

#include "text/words.h"
#include "trace/kineto_event.h"

namespace tprimat::logs {
namespace {

// "aten::mm" of "aten::mm, seq = 5, op_id = 8, sizes = [[2, 3], [3, 4]]", as PyTorch's emit_nvtx writes it.
std::string_view without_details(std::string_view name) {
  for (const std::string_view key : {", seq = ", ", op_id = ", ", sizes = "}) name = name.substr(0, name.find(key));
  return name;
}

bool fits_32(int64_t value) { return value >= 0 && value <= std::numeric_limits<int32_t>::max(); }

}  // namespace

std::optional<int64_t> step_of_range(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == name.size()) return std::nullopt;
  std::string word;
  for (const char c : lower_case(name.substr(0, end + 1)))
    if (c != ' ' && c != '_' && c != '#' && c != '-' && c != ':' && c != '=') word += c;
  constexpr std::array k_words{"profilerstep", "step", "trainstep", "trainingstep", "iteration", "iter", "globalstep"};
  if (std::find(k_words.begin(), k_words.end(), word) == k_words.end()) return std::nullopt;
  return parse_number<int64_t>(name.substr(end + 1));
}

std::optional<Span> TraceBuilder::span_of(int64_t begin, int64_t end) {
  if (begin < 0 || end < begin || end > k_max_nanoseconds) return std::nullopt;
  return Span{begin, end};
}

uint32_t TraceBuilder::index_of_name(std::string_view name) {
  return names_.find(name, [&] { return std::string(name); });
}

uint32_t TraceBuilder::index_of_thread(int64_t thread) {
  return threads_.try_emplace(thread, static_cast<uint32_t>(threads_.size())).first->second;
}

// Calls of NCCL and RCCL, and the ranges that NCCL itself names.
uint32_t TraceBuilder::index_of_collective(std::string_view name) {
  const std::string operation = name.starts_with("nccl") ? collective_operation(name) : "";
  return operation.empty() ? k_none : collectives_.find({operation, "", 0, 0});
}

uint32_t TraceBuilder::index_of_shapes(std::string_view name) {
  constexpr std::string_view k_key = ", sizes = ";
  const size_t sizes = name.find(k_key);
  if (sizes == std::string_view::npos) return k_none;
  const std::string_view lists = name.substr(sizes + k_key.size());
  const uint32_t index = shapes_.find(lists, [&] { return describe_shapes(lists, ""); });
  return trace_.shapes[index].empty() ? k_none : index;
}

void TraceBuilder::add_work(const Work& work) {
  ++trace_.all_events;
  if (!work.span || !fits_32(work.device)) {
    ++trace_.unusable_events;
    return;
  }
  GpuEvent event;
  event.span = *work.span;
  event.name = index_of_name(work.name);
  event.device = static_cast<int32_t>(work.device);
  event.kind = work.kind;
  event.stream = static_cast<int32_t>(work.stream);
  trace_.events.push_back(event);
  if (!keeps_calls()) return;
  numbers_.correlations.push_back(work.correlation.value_or(0));
  numbers_.externals.push_back(-1);
}

// link_launches() sees annotations and collective calls as operations, so that they launch too; finish() restores them.
uint32_t TraceBuilder::add_host_event(const Span& span, std::string_view name, int64_t thread, HostEventKind kind) {
  const auto index = static_cast<uint32_t>(trace_.host_events.size());
  HostEvent event;
  event.span = span;
  event.thread = index_of_thread(thread);
  event.name = index_of_name(without_details(name));
  event.kind = kind;
  if (keeps_calls()) {
    event.collective = index_of_collective(name);
    event.shapes = index_of_shapes(name);
  }
  if (kind == HostEventKind::annotation || event.collective != k_none) {
    event.kind = HostEventKind::operation;
    kinds_.emplace_back(index, kind);
  }
  trace_.host_events.push_back(event);
  return index;
}

void TraceBuilder::add_call(const Call& call) {
  ++trace_.all_events;
  if (!keeps_calls() || !call.span) return;
  const uint32_t event = add_host_event(*call.span, call.name, call.thread, HostEventKind::runtime);
  if (call.correlation) numbers_.calls.push_back({*call.correlation, event});
}

void TraceBuilder::add_range(std::optional<Span> span, std::string_view name, int64_t thread) {
  ++trace_.all_events;
  if (!span) return;
  if (const auto step = step_of_range(name)) {
    trace_.marks.push_back({*step, std::nullopt, *span});
    return;
  }
  if (name == "step") {
    plain_steps_.push_back(*span);
    return;
  }
  const bool is_operation = name.find("::") != std::string_view::npos;
  if (content_ == TraceContent::gpu || (!is_operation && !keeps_calls())) return;
  add_host_event(*span, name, thread, is_operation ? HostEventKind::operation : HostEventKind::annotation);
}

// Numbers them by begin. Where other ranges have numbers, a plain "step" is a part of one of those.
void TraceBuilder::number_plain_steps() {
  if (!trace_.marks.empty()) return;
  std::sort(plain_steps_.begin(), plain_steps_.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  for (const Span& span : plain_steps_)
    trace_.marks.push_back({static_cast<int64_t>(trace_.marks.size()), std::nullopt, span});
}

Trace TraceBuilder::finish() {
  number_plain_steps();
  if (keeps_calls()) link_launches(trace_, numbers_);
  for (const auto& [event, kind] : kinds_) trace_.host_events[event].kind = kind;
  return std::move(trace_);
}

}  // namespace tprimat::logs

#include "train/op_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "text/enum_names.h"

namespace tprimat::engine {
namespace {

using TracePoint = std::chrono::steady_clock::time_point;

// What an operation does, in the words of `tprimat profile`.
std::string_view class_of(const OpEvent& event) {
  const auto names = [&](std::string_view text) { return event.name.find(text) != std::string::npos; };
  if (event.kind == OpKind::product) return "matmul";
  if (event.kind == OpKind::collective || names("exchange")) return "collective";
  if (names("gradients")) return "optimizer";  // their norm, and clearing them
  if (names("norm")) return "norm";
  if (names("cross-entropy")) return "softmax";
  if (names("AdamW")) return "optimizer";
  if (names("embedding")) return "embedding";
  for (const char* word : {"activation", "rotary", "bias", "stream copy", "output of the stage", "rounding"})
    if (names(word)) return "elementwise";
  if (names("losses")) return "reduction";
  return names("attention") ? "attention" : "other";
}

std::string_view category_of(const OpEvent& event) {
  return event.kind == OpKind::range ? "user_annotation" : "cpu_op";
}

// As PyTorch's profiler names it.
const char* type_name(ElementType type) {
  switch (type) {
    case ElementType::float32: return "float";
    case ElementType::float64: return "double";
    case ElementType::bfloat16: return "c10::BFloat16";
    case ElementType::float16: return "c10::Half";
    case ElementType::int32: return "int";
    case ElementType::int64: return "long";
    case ElementType::bytes: break;
  }
  return "byte";
}

int64_t count_dims(const OpDims& dims) { return std::ranges::find(dims, 0) - dims.begin(); }

int64_t elements_of(const OpDims& dims) {
  int64_t elements = 1;
  for (int64_t i = 0; i < count_dims(dims); ++i) elements *= dims[static_cast<size_t>(i)];
  return elements;
}

// Text that grows: a trace has tens of thousands of events.
class TraceText {
 public:
  TraceText(TracePoint start, TracedRank rank) : start_(start), rank_(rank.rank) {
    const auto since_start = std::chrono::steady_clock::now() - start;
    const double begin = unix_time_seconds() - std::chrono::duration<double>(since_start).count();
    add("{{\"schemaVersion\": 1, \"distributedInfo\": {{\"rank\": {}, \"world_size\": {}}}, "
        "\"baseTimeNanoseconds\": {}, \"traceEvents\": [",
        rank.rank, rank.size, static_cast<int64_t>(begin * 1e9));
  }

  void add_step(const StepSpan& step) {
    begin_event("user_annotation", fmt::format("ProfilerStep#{}", step.step), step.begin, step.end);
    add("}}");
  }

  void add_event(const OpEvent& event) {
    begin_event(category_of(event), event.name, event.begin, event.end);
    add(", \"args\": {{");
    std::string_view between;
    const auto argument = [&](std::string_view key, const auto& value) {
      add("{}\"{}\": {}", std::exchange(between, ", "), key, value);
    };
    if (event.kind != OpKind::range) argument("class", quoted(class_of(event)));
    if (event.scope.phase != OpPhase::none) argument("phase", quoted(enum_name(event.scope.phase)));
    if (event.scope.layer >= 0) argument("layer", event.scope.layer);
    if (event.scope.micro_batch >= 0) argument("micro_batch", event.scope.micro_batch);
    if (event.work.inputs.front().front() > 0) add_inputs(event.work, argument);
    if (event.work.flops > 0) argument("flops", static_cast<int64_t>(event.work.flops));
    if (event.work.bytes > 0) argument("bytes", static_cast<int64_t>(event.work.bytes));
    if (event.kind == OpKind::collective) add_collective(event, argument);
    add("}}}}");
  }

  std::string finish() && { return std::move(text_) + "\n]}\n"; }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }

  // Names are our own and need no escapes.
  void begin_event(std::string_view category, std::string_view name, TracePoint begin, TracePoint end) {
    add(R"({}{{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": 0, "ts": {:.3f}, "dur": {:.3f})",
        std::exchange(between_, ",\n"), category, name, rank_, microseconds(start_, begin), microseconds(begin, end));
  }

  template <class Argument>
  static void add_inputs(const OpWork& work, const Argument& argument) {
    std::string dims, types;
    for (const OpDims& input : work.inputs) {
      if (input.front() == 0) continue;
      const std::string_view between = dims.empty() ? "" : ", ";
      dims += fmt::format("{}[{}]", between, fmt::join(input.begin(), input.begin() + count_dims(input), ", "));
      types += fmt::format("{}\"{}\"", between, type_name(work.type));
    }
    argument("Input Dims", "[" + dims + "]");
    argument("Input type", "[" + types + "]");
  }

  // As PyTorch's record_param_comms.
  template <class Argument>
  static void add_collective(const OpEvent& event, const Argument& argument) {
    argument("Collective name", quoted(event.name));
    argument("Process Group Description", quoted(event.group.name));
    argument("Group size", event.group.size);
    argument("In msg nelems", elements_of(event.work.inputs.front()));
    argument("dtype", quoted(type_name(event.work.type)));
  }

  static std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }
  static double microseconds(TracePoint from, TracePoint to) {
    return std::chrono::duration<double, std::micro>(to - from).count();
  }

  TracePoint start_;
  int rank_;
  std::string text_;
  std::string_view between_ = "\n";
};

}  // namespace

std::string OpTraceRequest::path_of(int rank) const {
  constexpr std::string_view k_rank = "{rank}";
  std::string own = path;
  if (const size_t at = own.find(k_rank); at != std::string::npos) own.replace(at, k_rank.size(), std::to_string(rank));
  return own;
}

std::optional<OpTraceRequest> op_trace_request() {
  const char* text = std::getenv("TPRIMAT_PROFILE");
  if (text == nullptr || *text == 0) return std::nullopt;
  std::istringstream stream(text);
  OpTraceRequest request;
  std::string kind;
  char colon = 0;
  std::getline(stream, kind, ':');
  stream >> request.first_step >> colon >> request.last_step >> std::ws;
  if (stream.get() == ':') std::getline(stream, request.path);
  const bool names_steps = colon == ':' && request.first_step >= 1 && request.last_step >= request.first_step;
  if (kind == "cuda") request.kind = OpTraceRequest::Kind::cuda;
  if (kind == "roctx") request.kind = OpTraceRequest::Kind::roctx;
  const bool is_own = kind == "own" && !request.path.empty();
  if (names_steps && (is_own || request.kind != OpTraceRequest::Kind::own)) return request;
  throw Error(Problem{fmt::format("'{}' is not a valid recording request", text), "TPRIMAT_PROFILE",
                      "set own:11:15:PATH for a trace of steps 11 to 15, cuda:11:15 for Nsight Systems, or roctx:11:15 "
                      "for rocprofv3"});
}

std::string render_op_trace(const std::vector<OpEvent>& events, const std::vector<StepSpan>& steps, TracedRank rank) {
  constexpr std::chrono::milliseconds k_before(1);  // the first operation may begin just before the mark of its step
  TraceText text(steps.empty() ? TracePoint() : steps.front().begin - k_before, rank);
  for (const StepSpan& step : steps) text.add_step(step);
  for (const OpEvent& event : events) text.add_event(event);
  return std::move(text).finish();
}

}  // namespace tprimat::engine

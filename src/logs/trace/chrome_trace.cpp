#include "trace/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "base/error.h"
#include "text/enum_names.h"
#include "text/format.h"
#include "text/words.h"
#include "trace/find_layers.h"
#include "trace/json_stream.h"
#include "trace/kineto_event.h"
#include "trace/launches.h"
#include "trace/trace_index.h"

namespace tprimat::logs {
namespace {

constexpr std::string_view k_step_mark = "ProfilerStep#";

// Keeps what the project needs of the events.
class EventKeeper {
 public:
  EventKeeper(Trace& trace, TraceContent content)
      : trace_(trace), content_(content), names_(trace.names), shapes_(trace.shapes), collectives_(trace.collectives) {}

  void keep(const KinetoEvent& event);
  // For a bare list of events: another program wrote it, with categories of its own.
  void expect_any_category() { any_category_ = true; }
  void finish() {
    if (content_ != TraceContent::everything) return;
    link_launches(trace_, numbers_);
    find_layers(trace_, sequences_);
  }

 private:
  void keep_gpu_event(const KinetoEvent& event, GpuEventKind kind);
  void keep_host_event(const KinetoEvent& event, HostEventKind kind);
  void keep_details(const KinetoEvent& event, HostEvent& kept);
  void keep_mark(const KinetoEvent& event, EventCategory category);
  uint32_t index_of_name(const KinetoEvent& event);
  uint32_t index_of_thread(const KinetoEvent& event);
  uint32_t index_of_shapes(const KinetoEvent& event);
  uint32_t index_of_collective(const KinetoEvent& event);

  Trace& trace_;
  TraceContent content_;
  bool any_category_ = false;
  TextIndex names_, shapes_;
  CollectiveIndex collectives_;
  std::map<std::pair<int64_t, int64_t>, uint32_t> threads_;  // process and thread as the trace numbers them
  std::string shapes_key_;
  LaunchNumbers numbers_;
  std::vector<int64_t> sequences_;  // of host events, as of find_layers
};

std::optional<HostEventKind> host_event_kind(EventCategory category, std::string_view name) {
  switch (category) {
    case EventCategory::operation:  // the first releases of Kineto know no annotations
      return name.starts_with("enumerate(DataLoader)") || name.starts_with("Optimizer.") ? HostEventKind::annotation
                                                                                         : HostEventKind::operation;
    case EventCategory::runtime: return HostEventKind::runtime;
    case EventCategory::annotation: return HostEventKind::annotation;
    case EventCategory::python: return HostEventKind::python;
    default: return std::nullopt;
  }
}

void EventKeeper::keep(const KinetoEvent& event) {
  ++trace_.all_events;
  if (event.raw(EventField::phase) != "X") return;
  const EventCategory category = event.category();
  if (category == EventCategory::kernel) return keep_gpu_event(event, GpuEventKind::kernel);
  if (category == EventCategory::memory_copy) return keep_gpu_event(event, GpuEventKind::memory_copy);
  if (category == EventCategory::memory_set) return keep_gpu_event(event, GpuEventKind::memory_set);
  const std::string_view name = event.raw(EventField::name);
  if (name.starts_with(k_step_mark)) return keep_mark(event, category);
  auto kind = host_event_kind(category, name);
  if (any_category_ && category == EventCategory::none) kind = HostEventKind::operation;
  if (!kind || content_ == TraceContent::gpu) return;
  if (content_ == TraceContent::everything || *kind == HostEventKind::operation) keep_host_event(event, *kind);
}

void EventKeeper::keep_gpu_event(const KinetoEvent& event, GpuEventKind kind) {
  const auto device = event.device();
  const auto span = event.span();
  if (!span || !device) {
    ++trace_.unusable_events;
    return;
  }
  GpuEvent kept;
  kept.span = *span;
  kept.name = index_of_name(event);
  kept.device = *device;
  kept.kind = kind;
  if (content_ == TraceContent::everything) {
    const auto stream =
        event.has(EventField::stream) ? event.whole(EventField::stream) : event.whole(EventField::thread);
    kept.stream = static_cast<int32_t>(stream.value_or(0));
    kept.collective = index_of_collective(event);
    numbers_.correlations.push_back(event.whole(EventField::correlation).value_or(-1));
    numbers_.externals.push_back(event.whole(EventField::external).value_or(-1));
  }
  trace_.events.push_back(kept);
}

void EventKeeper::keep_host_event(const KinetoEvent& event, HostEventKind kind) {
  const auto span = event.span();
  if (!span) return;
  HostEvent kept;
  kept.span = *span;
  kept.name = index_of_name(event);
  kept.thread = index_of_thread(event);
  kept.kind = kind;
  if (event.has(EventField::stated_class))
    trace_.stated_classes.try_emplace(kept.name, event.text(EventField::stated_class));
  if (content_ == TraceContent::everything) {
    keep_details(event, kept);
    sequences_.push_back(event.whole(EventField::sequence).value_or(-1));
  }
  trace_.host_events.push_back(kept);
}

void EventKeeper::keep_details(const KinetoEvent& event, HostEvent& kept) {
  const auto index = static_cast<uint32_t>(trace_.host_events.size());
  if (kept.kind == HostEventKind::runtime) {
    if (const auto correlation = event.whole(EventField::correlation)) numbers_.calls.push_back({*correlation, index});
    return;
  }
  if (kept.kind == HostEventKind::operation)
    if (const auto external = event.whole(EventField::external)) numbers_.operations.push_back({*external, index});
  if (const auto forward = event.whole(EventField::forward_thread))
    kept.phase = *forward == 0 ? Phase::forward : Phase::backward;
  if (event.has(EventField::stated_phase))
    kept.phase = parse_enum<Phase>(event.raw(EventField::stated_phase)).value_or(Phase::unknown);
  if (event.has(EventField::shapes)) kept.shapes = index_of_shapes(event);
  kept.collective = index_of_collective(event);
  constexpr int64_t k_max_layers = 1 << 20;
  const int64_t layer = event.whole(EventField::layer).value_or(-1);
  if (layer >= 0 && layer < k_max_layers) kept.layer = static_cast<int32_t>(layer);
  kept.flops = std::max<int64_t>(event.whole(EventField::flops).value_or(0), 0);
  kept.bytes = std::max<int64_t>(event.whole(EventField::bytes).value_or(0), 0);
}

void EventKeeper::keep_mark(const KinetoEvent& event, EventCategory category) {
  const auto step = parse_number<int64_t>(event.raw(EventField::name).substr(k_step_mark.size()));
  const auto span = event.span();
  if (!step || !span) return;
  const auto process = event.whole(EventField::process);
  const bool is_host = category == EventCategory::annotation || category == EventCategory::operation;
  if (category == EventCategory::gpu_annotation && process && *process >= 0 &&
      *process <= std::numeric_limits<int32_t>::max())
    trace_.marks.push_back({*step, static_cast<int32_t>(*process), *span});
  else if (is_host)
    trace_.marks.push_back({*step, std::nullopt, *span});
}

uint32_t EventKeeper::index_of_name(const KinetoEvent& event) {
  return names_.find(event.raw(EventField::name), [&] { return event.text(EventField::name); });
}

uint32_t EventKeeper::index_of_thread(const KinetoEvent& event) {
  const std::pair key{event.whole(EventField::process).value_or(0), event.whole(EventField::thread).value_or(0)};
  return threads_.try_emplace(key, static_cast<uint32_t>(threads_.size())).first->second;
}

uint32_t EventKeeper::index_of_shapes(const KinetoEvent& event) {
  const JsonValue& shapes = event.value(EventField::shapes);
  shapes_key_ = shapes.raw;
  shapes_key_ += event.raw(EventField::types);
  const uint32_t index = shapes_.find(shapes_key_, [&] {
    return shapes.kind == JsonKind::string ? shapes.text() : describe_shapes(shapes.raw, event.raw(EventField::types));
  });
  return trace_.shapes[index].empty() ? k_none : index;
}

uint32_t EventKeeper::index_of_collective(const KinetoEvent& event) {
  auto call = collective_of(event);
  return call ? collectives_.find(std::move(*call)) : k_none;
}

// Reads the parts of the file that the project uses, in any order.
class ChromeReader {
 public:
  ChromeReader(std::string_view bytes, std::string_view where, TraceContent content, const MappedFile* file)
      : where_(where), json_(bytes, where, file), keeper_(trace_, content) {}

  Trace read() {
    const char first = json_.peek();
    if (first == '[') {
      keeper_.expect_any_category();
      read_events();
    } else if (first == '{') {
      json_.members([this](const std::string& key) { read_member(key); });
    } else {
      json_.skip();
    }
    if (json_.peek() != 0) json_.item([](JsonCursor& cursor) { cursor.fail("nothing should follow here"); });
    if (!has_events_) throw Error(Problem{"is JSON, but not a Chrome trace: it has no traceEvents", where_, ""});
    keeper_.finish();
    return std::move(trace_);
  }

 private:
  void read_member(const std::string& key) {
    const char first = json_.peek();
    if (key == "traceEvents" && first == '[')
      read_events();
    else if (key == "deviceProperties" && first == '[')
      json_.elements([this] { read_device(); });
    else if (key == "distributedInfo" && first == '{')
      read_run();
    else if (key == "baseTimeNanoseconds")
      json_.item(
          [this](JsonCursor& cursor) { trace_.base_unix_nanoseconds = parse_number<int64_t>(cursor.value().raw); });
    else
      json_.skip();
  }

  void read_events() {
    has_events_ = true;
    json_.elements([this] {
      json_.item([this](JsonCursor& cursor) {
        event_.read(cursor);
        keeper_.keep(event_);
      });
    });
  }

  // The values of an object's own members, where the element is one.
  void read_object(const std::function<void(std::string_view key, const JsonValue& value)>& visit) {
    json_.item([&](JsonCursor& cursor) {
      if (cursor.peek() != '{') {
        cursor.value();
        return;
      }
      cursor.members([&](std::string_view key) { visit(key, cursor.value()); });
    });
  }

  void read_device() {
    std::optional<int64_t> id;
    std::string name;
    read_object([&](std::string_view key, const JsonValue& value) {
      if (key == "id") id = parse_number<int64_t>(value.raw);
      if (key == "name" && value.kind == JsonKind::string) name = value.text();
    });
    if (id && !name.empty()) trace_.device_names[*id] = printable(name);
  }

  void read_run() {
    read_object([this](std::string_view key, const JsonValue& value) {
      if (key == "rank") trace_.rank = parse_number<int64_t>(value.raw);
      if (key == "world_size") trace_.world_size = parse_number<int64_t>(value.raw);
    });
  }

  std::string where_;
  Trace trace_;
  JsonStream json_;
  EventKeeper keeper_;
  KinetoEvent event_;
  bool has_events_ = false;
};

// ".439" microseconds in whole nanoseconds, rounded; what follows the digits is left in `text`.
int64_t take_fraction(std::string_view& text) {
  text.remove_prefix(1);
  int64_t nanoseconds = 0, scale = 100;
  bool rounds_up = false;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), scale /= 10) {
    if (scale > 0) nanoseconds += (text.front() - '0') * scale;
    if (scale == 0 && !rounds_up) rounds_up = text.front() >= '5';
    if (scale == 0) break;
  }
  while (!text.empty() && is_digit(text.front())) text.remove_prefix(1);
  return nanoseconds + (rounds_up ? 1 : 0);
}

}  // namespace

Trace read_chrome_trace(std::string_view bytes, std::string_view where, TraceContent content, const MappedFile* file) {
  return ChromeReader(bytes, where, content, file).read();
}

std::optional<int64_t> parse_microseconds(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = negative ? text.substr(1) : text;
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error != std::errc() || digits.starts_with('-') || whole > k_max_nanoseconds / 1000 - 1) return std::nullopt;
  digits.remove_prefix(static_cast<size_t>(end - digits.data()));
  int64_t nanoseconds = whole * 1000;
  if (digits.starts_with('.')) nanoseconds += take_fraction(digits);
  if (!digits.empty()) {  // an exponent: no profiler writes one where digits matter
    double value = 0.0;
    const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits = failure == std::errc() && stop == text.data() + text.size() && std::fabs(value) < 4e15;
    return fits ? std::optional<int64_t>(std::llround(value * 1000.0)) : std::nullopt;
  }
  return negative ? -nanoseconds : nanoseconds;
}

}  // namespace tprimat::logs

#include "report/step_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "report/document.h"
#include "report/step_bands.h"
#include "text/format.h"
#include "trace/host_summary.h"
#include "why/collective_calls.h"
#include "why/host_states.h"
#include "why/step_pieces.h"

namespace tprimat::results {
namespace {

using logs::HostEvent, logs::HostEventKind, logs::Phase, logs::Span, logs::Trace;

constexpr size_t k_max_streams = 6, k_max_threads = 4, k_name_width = 100;

// Numbers texts in the order in which they occur.
class Texts {
 public:
  explicit Texts(std::vector<std::string>& list) : list_(list) {}
  int64_t number(std::string text) {
    const auto [place, is_new] = places_.emplace(std::move(text), list_.size());
    if (is_new) list_.push_back(place->first);
    return static_cast<int64_t>(place->second);
  }

 private:
  std::vector<std::string>& list_;
  std::unordered_map<std::string, size_t> places_;
};

// Joins pieces shorter than a cell until they fill one, where no gap is seen between them. The longest of them gives
// the name and the group.
std::vector<LanePiece> join_short(std::vector<LanePiece> pieces, int64_t cell) {
  std::ranges::sort(pieces, {}, [](const LanePiece& piece) { return piece.span.begin; });
  std::vector<LanePiece> joined;
  std::vector<int64_t> longest;
  for (const LanePiece& piece : pieces) {
    const int64_t length = piece.span.length();
    const bool stands_alone = joined.empty() || length >= cell || joined.back().span.length() >= cell ||
                              piece.span.begin - joined.back().span.end >= cell / 2;
    if (stands_alone) {
      joined.push_back(piece), longest.push_back(length);
      continue;
    }
    LanePiece& last = joined.back();
    last.span.end = std::max(last.span.end, piece.span.end);
    last.events += piece.events;
    if (length > longest.back())
      last.group = piece.group, last.name = piece.name, last.layer = piece.layer, longest.back() = length;
  }
  return joined;
}

class Drawer {
 public:
  Drawer(const Trace& trace, const logs::StepMark& mark) : trace_(trace), mark_(mark.span), window_(mark.span) {
    timeline_.step = mark.step;
    timeline_.marked = static_cast<double>(mark.span.length()) / 1e3;
    for (const logs::GpuEvent& event : trace.events)
      if (belongs(event)) window_.end = std::max(window_.end, event.span.end);
    timeline_.length = static_cast<double>(window_.length()) / 1e3;
  }

  StepTimeline draw() {
    add_bands();
    add_threads();
    add_streams();
    return std::move(timeline_);
  }

 private:
  // Launched within the step; without that knowledge, run within it.
  bool belongs(const logs::GpuEvent& event) const {
    const int64_t at = event.launched >= 0 ? event.launched : event.span.begin;
    return at >= mark_.begin && at <= mark_.end;
  }
  bool is_within(const Span& span) const { return span.end > window_.begin && span.begin < window_.end; }

  std::string_view group_of(const logs::GpuEvent& event) const { return enum_name(class_of_work(trace_, event)); }

  std::string_view group_of(const HostEvent& event) const {
    if (event.kind == HostEventKind::runtime) return "runtime call";
    if (event.kind != HostEventKind::operation) return event.phase == Phase::data ? "data" : "Python";
    return enum_name(logs::class_of_operation(trace_, event.name));
  }

  std::string name_of(const LanePiece& piece) const {
    if (piece.layer >= 0) return fmt::format("layer {}", piece.layer);
    return piece.name == logs::k_none ? "" : shorten(printable(trace_.names[piece.name]), k_name_width);
  }

  void add_lane(std::string title, std::vector<LanePiece> pieces) {
    if (pieces.empty()) return;
    const int64_t cell = std::max<int64_t>(1, window_.length() / (k_max_spans_of_lane / 2));
    TimelineLane lane{std::move(title), {}};
    for (const LanePiece& piece : join_short(std::move(pieces), cell)) {
      const int64_t begin = std::max(piece.span.begin, window_.begin), end = std::min(piece.span.end, window_.end);
      if (end <= begin) continue;
      const std::string name = name_of(piece);
      lane.spans.push_back({static_cast<double>(begin - window_.begin) / 1e3, static_cast<double>(end - begin) / 1e3,
                            groups_.number(std::string(piece.group)), names_.number(name), piece.events});
    }
    if (!lane.spans.empty()) timeline_.lanes.push_back(std::move(lane));
  }

  void add_bands() {
    StepBands bands = find_bands(trace_, window_);
    add_lane("phases", std::move(bands.phases));
    add_lane("layers", std::move(bands.layers));
    add_lane("layers on GPU", std::move(bands.device_layers));
  }

  // The busiest of them.
  template <class Key, class Title>
  void add_lanes(std::map<Key, std::vector<LanePiece>> lanes, size_t most, Title title) {
    std::vector<std::pair<int64_t, Key>> order;
    for (const auto& [key, pieces] : lanes) {
      int64_t busy = 0;
      for (const LanePiece& piece : pieces) busy += piece.span.length();
      order.emplace_back(-busy, key);
    }
    std::ranges::sort(order);
    if (order.size() > most) order.resize(most);
    for (const auto& [busy, key] : order) add_lane(title(key), std::move(lanes[key]));
  }

  // A thread at each moment: the innermost event.
  void add_threads() {
    const auto is_drawn = [this](const HostEvent& event) {
      return is_within(event.span) && event.span.length() < window_.length() * 95 / 100;
    };
    std::map<uint32_t, std::vector<LanePiece>> threads;
    for (const HostStretch& each : innermost_events(trace_, is_drawn)) {
      const HostEvent& event = trace_.host_events[each.event];
      threads[event.thread].push_back({.span = each.span, .group = group_of(event), .name = event.name});
    }
    add_lanes(std::move(threads), k_max_threads, [](uint32_t thread) { return fmt::format("host thread {}", thread); });
  }

  void add_streams() {
    using Stream = std::pair<int32_t, int32_t>;  // of a device
    std::map<Stream, std::vector<LanePiece>> streams;
    for (const logs::GpuEvent& event : trace_.events)
      if (is_within(event.span))
        streams[{event.device, event.stream}].push_back(
            {.span = event.span, .group = group_of(event), .name = event.name});
    add_lanes(std::move(streams), k_max_streams,
              [](const Stream& key) { return fmt::format("GPU {} stream {}", key.first, key.second); });
  }

  const Trace& trace_;
  Span mark_, window_;
  StepTimeline timeline_;
  Texts names_{timeline_.names}, groups_{timeline_.groups};
};

}  // namespace

std::optional<StepTimeline> draw_step(const logs::Trace& trace) {
  std::vector<logs::StepMark> marks = dividing_marks(trace);
  if (marks.empty()) marks = logs::find_steps(trace);
  std::erase_if(marks, [](const logs::StepMark& mark) { return mark.span.length() <= 0; });
  if (marks.empty()) return std::nullopt;
  const auto middle = marks.begin() + static_cast<std::ptrdiff_t>(marks.size() / 2);
  std::ranges::nth_element(marks, middle, {}, [](const logs::StepMark& mark) { return mark.span.length(); });
  return Drawer(trace, *middle).draw();
}

Json timeline_to_json(const StepTimeline& timeline) {
  Json lanes = Json::array();
  for (const TimelineLane& lane : timeline.lanes) {
    Json spans = Json::array();
    for (const TimelineSpan& span : lane.spans)
      spans.push_back(Json::array({span.begin, span.length, span.group, span.name, span.events}));
    lanes.push_back(Json{{"title", lane.title}, {"spans", std::move(spans)}});
  }
  return {{"step", timeline.step},   {"length", timeline.length}, {"marked", timeline.marked},
          {"names", timeline.names}, {"groups", timeline.groups}, {"lanes", std::move(lanes)}};
}

}  // namespace tprimat::results

#include "report/step_bands.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/enum_names.h"

namespace tprimat::results {
namespace {

using logs::HostEvent, logs::HostEventKind, logs::Phase, logs::Span, logs::Trace;

struct LayerCall {
  Span span;
  int64_t layer = 0;
};

// 3 of "nn.Module: Qwen2DecoderLayer_3"
std::optional<int64_t> layer_of_module(std::string_view name) {
  const size_t line = name.rfind('_');
  if (!name.starts_with("nn.Module: ") || line == std::string_view::npos) return std::nullopt;
  const std::string_view kind = name.substr(0, line);
  if (!kind.ends_with("Layer") && !kind.ends_with("Block")) return std::nullopt;
  int64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data() + line + 1, name.data() + name.size(), layer);
  if (error != std::errc() || end != name.data() + name.size() || layer < 0) return std::nullopt;
  return layer;
}

std::string_view colour_group(int64_t layer) { return layer % 2 == 0 ? "even layer" : "odd layer"; }

// Those of the host in the order of their begin; none lies within another.
std::vector<LayerCall> find_layers(const Trace& trace, const Span& window) {
  std::vector<LayerCall> stated, modules;
  for (const HostEvent& event : trace.host_events) {
    if (event.span.end <= window.begin || event.span.begin >= window.end) continue;
    if (event.layer >= 0) stated.push_back({event.span, event.layer});
    if (event.kind != HostEventKind::python) continue;
    if (const auto layer = layer_of_module(trace.names[event.name])) modules.push_back({event.span, *layer});
  }
  std::vector<LayerCall> calls = stated.empty() ? std::move(modules) : std::move(stated);
  std::ranges::stable_sort(calls, {}, [](const LayerCall& call) { return call.span.begin; });
  std::vector<LayerCall> joined;
  for (const LayerCall& call : calls)
    if (!joined.empty() && (joined.back().layer == call.layer || joined.back().span.end >= call.span.end))
      joined.back().span.end = std::max(joined.back().span.end, call.span.end);
    else
      joined.push_back(call);
  return joined;
}

// As far as the next one of the band begins.
void cut_overlaps(std::vector<LanePiece>& band) {
  std::ranges::stable_sort(band, {}, [](const LanePiece& piece) { return piece.span.begin; });
  for (size_t i = 0; i + 1 < band.size(); ++i) band[i].span.end = std::min(band[i].span.end, band[i + 1].span.begin);
}

std::vector<LanePiece> find_phases(const Trace& trace, const Span& window) {
  std::vector<const HostEvent*> events;
  for (const HostEvent& event : trace.host_events)
    if (event.phase != Phase::unknown && event.span.end > window.begin && event.span.begin < window.end)
      events.push_back(&event);
  std::ranges::stable_sort(events, {}, [](const HostEvent* event) { return event->span.begin; });
  std::vector<LanePiece> band;
  for (const HostEvent* event : events) {
    const std::string_view group = enum_name(event->phase);
    if (!band.empty() && band.back().group == group)
      band.back().span.end = std::max(band.back().span.end, event->span.end), ++band.back().events;
    else
      band.push_back({.span = event->span, .group = group, .name = event->name});
  }
  cut_overlaps(band);
  return band;
}

// From the first to the last kernel that a layer launched.
std::vector<LanePiece> follow_to_device(const Trace& trace, const std::vector<LayerCall>& layers) {
  std::vector<LanePiece> band(layers.size());
  for (LanePiece& piece : band) piece.span = {INT64_MAX, INT64_MIN}, piece.events = 0;
  for (const logs::GpuEvent& event : trace.events) {
    if (event.launched < 0) continue;
    const auto after =
        std::ranges::upper_bound(layers, event.launched, {}, [](const LayerCall& call) { return call.span.begin; });
    if (after == layers.begin() || (after - 1)->span.end < event.launched) continue;
    LanePiece& piece = band[static_cast<size_t>(after - 1 - layers.begin())];
    piece.span.begin = std::min(piece.span.begin, event.span.begin);
    piece.span.end = std::max(piece.span.end, event.span.end);
    ++piece.events;
  }
  for (size_t i = 0; i < layers.size(); ++i)
    band[i].group = colour_group(layers[i].layer), band[i].layer = layers[i].layer;
  std::erase_if(band, [](const LanePiece& piece) { return piece.events == 0; });
  cut_overlaps(band);
  return band;
}

}  // namespace

StepBands find_bands(const Trace& trace, const Span& window) {
  const std::vector<LayerCall> layers = find_layers(trace, window);
  StepBands bands{find_phases(trace, window), {}, follow_to_device(trace, layers)};
  for (const LayerCall& call : layers)
    bands.layers.push_back({.span = call.span, .group = colour_group(call.layer), .layer = call.layer});
  cut_overlaps(bands.layers);
  return bands;
}

}  // namespace tprimat::results

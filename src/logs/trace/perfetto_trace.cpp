#include "trace/perfetto_trace.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "text/proto.h"
#include "text/words.h"
#include "trace/trace_builder.h"

namespace tprimat::logs {
namespace {

// Numbers of fields: protos/perfetto/trace of https://github.com/google/perfetto.
struct Tag {
  static constexpr uint32_t packet = 1;                                                        // Trace
  static constexpr uint32_t sequence = 10, track_event = 11, interned_data = 12, flags = 13;   // TracePacket
  static constexpr uint32_t event_categories = 1, event_names = 2, annotation_names = 3;       // InternedData
  static constexpr uint32_t string_values = 29;                                                // InternedData
  static constexpr uint32_t id = 1, text = 2;                                                  // what it holds
  static constexpr uint32_t category_id = 3, annotation = 4, type = 9, name_id = 10;           // TrackEvent
  static constexpr uint32_t category = 22, name = 23;                                          // TrackEvent
  static constexpr uint32_t key_id = 1, unsigned_value = 3, signed_value = 4, text_value = 6;  // DebugAnnotation
  static constexpr uint32_t key = 10, text_id = 17;                                            // DebugAnnotation
};
constexpr uint64_t k_slice_begin = 1, k_state_cleared = 1;

using Strings = std::unordered_map<uint64_t, std::string>;

// What the packets of one writer refer to by number.
struct Sequence {
  Strings categories, names, keys, values;
};

std::string_view find_string(const Strings& strings, uint64_t id) {
  const auto found = strings.find(id);
  return found != strings.end() ? std::string_view(found->second) : std::string_view();
}

// The fields of a slice that we read.
struct Slice {
  uint64_t type = 0;
  std::string_view category, name;
  std::optional<int64_t> begin, end, agent, target, source, queue, stream, thread, correlation;

  std::optional<Span> span() const { return begin && end ? TraceBuilder::span_of(*begin, *end) : std::nullopt; }
};

struct SliceFigure {
  std::string_view key;
  std::optional<int64_t> Slice::*figure;
};
constexpr SliceFigure k_figures[] = {{"begin_ns", &Slice::begin},   {"end_ns", &Slice::end},
                                     {"agent", &Slice::agent},      {"dst_agent", &Slice::target},
                                     {"src_agent", &Slice::source}, {"queue", &Slice::queue},
                                     {"stream_ID", &Slice::stream}, {"stream_id", &Slice::stream},
                                     {"tid", &Slice::thread},       {"corr_id", &Slice::correlation}};

// "Agent 4" and "GPU-4" as well
std::optional<int64_t> number_in(std::string_view text) {
  if (const size_t blank = text.find_last_of(" -"); blank != std::string_view::npos) text.remove_prefix(blank + 1);
  return parse_number<int64_t>(text);
}

class PerfettoReader {
 public:
  PerfettoReader(std::string_view bytes, std::string_view where, TraceContent content)
      : bytes_(bytes), where_(where), builder_(content) {}

  Trace read();

 private:
  void read_packet(std::string_view packet);
  void read_interned(std::string_view data, Sequence& sequence);
  void read_slice(std::string_view event, const Sequence& sequence);
  void read_annotation(std::string_view annotation, const Sequence& sequence, Slice& slice);
  void keep(const Slice& slice);
  void keep_work(const Slice& slice, GpuEventKind kind);
  template <class Visit>
  void for_each_field(std::string_view message, Visit visit);

  std::string_view bytes_;
  std::string where_;
  TraceBuilder builder_;
  std::map<uint64_t, Sequence> sequences_;
  size_t packet_at_ = 0;
};

template <class Visit>
void PerfettoReader::for_each_field(std::string_view message, Visit visit) {
  while (!message.empty()) {
    const auto each = take_proto_field(message);
    if (!each)
      throw Error(
          Problem{fmt::format("is damaged or truncated: the packet at byte {} is no message of Perfetto", packet_at_),
                  where_, "record the trace again"});
    visit(*each);
  }
}

Trace PerfettoReader::read() {
  const auto offset = [&](std::string_view part) { return static_cast<size_t>(part.data() - bytes_.data()); };
  std::string_view rest = bytes_;
  while (!rest.empty()) {
    packet_at_ = offset(rest);
    const auto each = take_proto_field(rest);
    if (!each)
      throw Error(Problem{fmt::format("is truncated: it ends within the packet at byte {}", packet_at_), where_,
                          "record the trace again and let the profiler finish writing"});
    if (each->number == Tag::packet) read_packet(each->bytes);
  }
  return builder_.finish();
}

void PerfettoReader::read_packet(std::string_view packet) {
  uint64_t sequence = 0, flags = 0;
  std::string_view event, interned;
  for_each_field(packet, [&](const ProtoField& each) {
    if (each.number == Tag::sequence) sequence = each.value;
    if (each.number == Tag::flags) flags = each.value;
    if (each.number == Tag::track_event) event = each.bytes;
    if (each.number == Tag::interned_data) interned = each.bytes;
  });
  Sequence& state = sequences_[sequence];
  if ((flags & k_state_cleared) != 0) state = {};
  if (!interned.empty()) read_interned(interned, state);
  if (!event.empty()) read_slice(event, state);
}

void PerfettoReader::read_interned(std::string_view data, Sequence& sequence) {
  for_each_field(data, [&](const ProtoField& each) {
    Strings* const strings = each.number == Tag::event_categories   ? &sequence.categories
                             : each.number == Tag::event_names      ? &sequence.names
                             : each.number == Tag::annotation_names ? &sequence.keys
                             : each.number == Tag::string_values    ? &sequence.values
                                                                    : nullptr;
    if (strings == nullptr) return;
    uint64_t id = 0;
    std::string_view text;
    for_each_field(each.bytes, [&](const ProtoField& item) {
      if (item.number == Tag::id) id = item.value;
      if (item.number == Tag::text) text = item.bytes;
    });
    (*strings)[id] = text;
  });
}

void PerfettoReader::read_slice(std::string_view event, const Sequence& sequence) {
  Slice slice;
  for_each_field(event, [&](const ProtoField& each) {
    if (each.number == Tag::type) slice.type = each.value;
    if (each.number == Tag::category_id) slice.category = find_string(sequence.categories, each.value);
    if (each.number == Tag::category) slice.category = each.bytes;
    if (each.number == Tag::name_id) slice.name = find_string(sequence.names, each.value);
    if (each.number == Tag::name) slice.name = each.bytes;
  });
  if (slice.type != k_slice_begin) return;
  for_each_field(event, [&](const ProtoField& each) {
    if (each.number == Tag::annotation) read_annotation(each.bytes, sequence, slice);
  });
  keep(slice);
}

void PerfettoReader::read_annotation(std::string_view annotation, const Sequence& sequence, Slice& slice) {
  std::string_view key;
  std::optional<int64_t> value;
  for_each_field(annotation, [&](const ProtoField& each) {
    if (each.number == Tag::key_id) key = find_string(sequence.keys, each.value);
    if (each.number == Tag::key) key = each.bytes;
    if (each.number == Tag::unsigned_value || each.number == Tag::signed_value)
      value = static_cast<int64_t>(each.value);
    if (each.number == Tag::text_value) value = number_in(each.bytes);
    if (each.number == Tag::text_id) value = number_in(find_string(sequence.values, each.value));
  });
  for (const SliceFigure& figure : k_figures)
    if (figure.key == key) slice.*figure.figure = value;
}

void PerfettoReader::keep(const Slice& slice) {
  const int64_t thread = slice.thread.value_or(0);
  if (slice.category == "kernel_dispatch") {
    keep_work(slice, GpuEventKind::kernel);
  } else if (slice.category == "memory_copy") {
    keep_work(slice, GpuEventKind::memory_copy);
  } else if (slice.category == "hip_api" || slice.category == "rccl_api") {
    builder_.add_call({slice.span(), slice.name, thread, slice.correlation});
  } else if (slice.category == "marker_api" && slice.span() && slice.span()->length() > 0) {
    builder_.add_range(slice.span(), slice.name, thread);
  }
}

// A copy belongs to the GPU that it goes to, or else to the one that it comes from.
void PerfettoReader::keep_work(const Slice& slice, GpuEventKind kind) {
  const auto other = slice.name.ends_with("DEVICE_TO_HOST") ? slice.source : slice.target;
  const auto device = kind == GpuEventKind::kernel ? slice.agent : other;
  const int64_t stream = slice.stream.value_or(slice.queue.value_or(0));
  builder_.add_work({slice.span(), slice.name, device.value_or(-1), stream, kind, slice.correlation});
}

}  // namespace

// Checks the whole first packet: text that begins with a line end has the same first byte.
bool is_perfetto_trace(std::string_view bytes) {
  const auto first = take_proto_field(bytes);
  if (!first || first->number != Tag::packet || first->bytes.empty()) return false;
  std::string_view packet = first->bytes;
  while (!packet.empty())
    if (!take_proto_field(packet)) return false;
  return true;
}

Trace read_perfetto_trace(std::string_view bytes, std::string_view where, TraceContent content) {
  return PerfettoReader(bytes, where, content).read();
}

}  // namespace tprimat::logs

#include "trace/chrome_trace.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "text/format.h"
#include "trace/trace_characters.h"

namespace tprimat::logs {
namespace {

constexpr int64_t k_max_nanoseconds = int64_t{1} << 61;  // sums and differences of two of these fit

constexpr std::string_view k_step_mark = "ProfilerStep#";

std::optional<int64_t> parse_whole(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Categories of Kineto today and, with a capital, of its first releases.
std::optional<GpuEventKind> gpu_event_kind(std::string_view category) {
  if (category == "kernel" || category == "Kernel") return GpuEventKind::kernel;
  if (category == "gpu_memcpy" || category == "Memcpy") return GpuEventKind::memory_copy;
  if (category == "gpu_memset" || category == "Memset") return GpuEventKind::memory_set;
  return std::nullopt;
}

bool is_host_annotation(std::string_view category) {
  return category == "user_annotation" || category == "cpu_op" || category == "Operator";
}

bool is_host_operation(std::string_view category) { return category == "cpu_op" || category == "Operator"; }

// One event, device or description of the run while it is read. Strings keep their memory from item to item.
struct OpenItem {
  std::string phase, category, name, stated_class;
  std::optional<int64_t> begin, duration, process, thread, device;  // of an event
  std::optional<int64_t> id;                                        // of a device
  std::optional<int64_t> rank, world_size;                          // of the run

  void clear() {
    phase.clear(), category.clear(), name.clear(), stated_class.clear();
    begin.reset(), duration.reset(), process.reset(), thread.reset(), device.reset();
    id.reset(), rank.reset(), world_size.reset();
  }
};

std::optional<Span> span_of(const OpenItem& event) {
  if (!event.begin || !event.duration || *event.begin < 0 || *event.duration < 0) return std::nullopt;
  return Span{*event.begin, *event.begin + *event.duration};
}

enum class Section { none, events, devices, distributed };

// A field of an item: a string or a number.
struct ItemField {
  Section section;
  size_t depth;  // below the item; 1: in its "args"
  std::string_view key;
  std::string OpenItem::*text = nullptr;
  std::optional<int64_t> OpenItem::*number = nullptr;
  std::optional<int64_t> (*parse)(std::string_view text) = parse_whole;
};
constexpr ItemField k_fields[] = {{Section::events, 0, "ph", &OpenItem::phase},
                                  {Section::events, 0, "cat", &OpenItem::category},
                                  {Section::events, 0, "name", &OpenItem::name},
                                  {Section::events, 0, "pid", nullptr, &OpenItem::process},
                                  {Section::events, 0, "tid", nullptr, &OpenItem::thread},
                                  {Section::events, 0, "ts", nullptr, &OpenItem::begin, parse_microseconds},
                                  {Section::events, 0, "dur", nullptr, &OpenItem::duration, parse_microseconds},
                                  {Section::events, 1, "device", nullptr, &OpenItem::device},
                                  {Section::events, 1, "class", &OpenItem::stated_class},
                                  {Section::devices, 0, "id", nullptr, &OpenItem::id},
                                  {Section::devices, 0, "name", &OpenItem::name},
                                  {Section::distributed, 0, "rank", nullptr, &OpenItem::rank},
                                  {Section::distributed, 0, "world_size", nullptr, &OpenItem::world_size}};

// Receives the parts of the JSON text one by one.
class TraceHandler {
 public:
  using Json = nlohmann::json;

  TraceHandler(Trace& trace, TraceContent content) : trace_(trace), content_(content) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(Json::number_integer_t value) { return whole_number(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return whole_number(value); }
  bool number_float(Json::number_float_t, const std::string& text) { return number(text); }
  bool binary(Json::binary_t&) { return true; }
  bool string(std::string& text);
  bool key(std::string& text);
  bool start_object(size_t);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool parse_error(size_t, const std::string&, const Json::exception& error) {
    problem_ = error.what();
    return false;
  }

  bool has_events() const { return has_events_; }
  const std::string& problem() const { return problem_; }

 private:
  void open_section();
  void end_item();
  void keep_event();
  void keep_gpu_event(GpuEventKind kind);
  void keep_host_event();
  void keep_mark();
  uint32_t index_of_name();
  bool number(std::string_view text);
  template <class Integer>
  bool whole_number(Integer value) {
    return field_ == nullptr || number(fmt::format_int(value).str());
  }
  const ItemField* field_of(std::string_view key) const;
  bool in_item() const { return section_ != Section::none && depth_ >= item_depth_; }

  Trace& trace_;
  TraceContent content_;
  std::map<std::pair<int64_t, int64_t>, uint32_t> threads_;  // process and thread as the trace numbers them
  std::unordered_map<std::string, uint32_t> name_index_;
  OpenItem item_;
  std::string root_key_, problem_;
  size_t depth_ = 0;       // open objects and arrays
  size_t item_depth_ = 0;  // of the objects that the section holds
  Section section_ = Section::none;
  const ItemField* field_ = nullptr;  // of the key read last; null: none of interest
  bool in_arguments_ = false, has_events_ = false;
};

// The array or object that just opened, if we read it.
void TraceHandler::open_section() {
  const bool bare_array = depth_ == 1;
  if (!bare_array && depth_ != 2) return;
  if (bare_array || root_key_ == "traceEvents") {
    section_ = Section::events;
    has_events_ = true;
  } else if (root_key_ == "deviceProperties") {
    section_ = Section::devices;
  }
  item_depth_ = depth_ + 1;
}

bool TraceHandler::start_array(size_t) {
  ++depth_;
  field_ = nullptr;
  if (section_ == Section::none) open_section();
  return true;
}

bool TraceHandler::end_array() {
  --depth_;
  if (section_ != Section::none && depth_ + 2 == item_depth_) section_ = Section::none;
  return true;
}

bool TraceHandler::start_object(size_t) {
  ++depth_;
  if (section_ == Section::none && depth_ == 2 && root_key_ == "distributedInfo") {
    section_ = Section::distributed;
    item_depth_ = depth_;
  }
  if (section_ != Section::none && depth_ == item_depth_) item_.clear();
  field_ = nullptr;
  return true;
}

bool TraceHandler::end_object() {
  if (section_ != Section::none && depth_ == item_depth_) end_item();
  --depth_;
  if (section_ == Section::distributed && depth_ < item_depth_) section_ = Section::none;
  return true;
}

void TraceHandler::end_item() {
  if (section_ == Section::events) keep_event();
  if (section_ == Section::devices && item_.id && !item_.name.empty())
    trace_.device_names[*item_.id] = printable(item_.name);
  if (section_ == Section::distributed) trace_.rank = item_.rank, trace_.world_size = item_.world_size;
}

bool TraceHandler::key(std::string& text) {
  if (depth_ == 1) root_key_ = text;
  if (!in_item()) return true;
  if (depth_ == item_depth_) in_arguments_ = text == "args";
  field_ = field_of(text);
  return true;
}

const ItemField* TraceHandler::field_of(std::string_view key) const {
  for (const ItemField& each : k_fields)
    if (each.section == section_ && item_depth_ + each.depth == depth_ && each.key == key &&
        (each.depth == 0 || in_arguments_))
      return &each;
  return nullptr;
}

bool TraceHandler::string(std::string& text) {
  if (field_ == nullptr || field_->text == nullptr) return number(text);  // "ts": "1587074269993629" is allowed too
  (item_.*field_->text).swap(text);
  field_ = nullptr;
  return true;
}

bool TraceHandler::number(std::string_view text) {
  if (field_ != nullptr && field_->number != nullptr) item_.*field_->number = field_->parse(text);
  field_ = nullptr;
  return true;
}

void TraceHandler::keep_event() {
  ++trace_.all_events;
  if (item_.phase != "X") return;
  if (const auto kind = gpu_event_kind(item_.category)) return keep_gpu_event(*kind);
  if (item_.name.starts_with(k_step_mark)) return keep_mark();
  if (content_ != TraceContent::gpu && is_host_operation(item_.category)) keep_host_event();
}

void TraceHandler::keep_gpu_event(GpuEventKind kind) {
  const auto device = item_.device ? item_.device : item_.process;
  const bool fits = device && *device >= 0 && *device <= std::numeric_limits<int32_t>::max();
  const auto span = span_of(item_);
  if (!span || !fits) {
    ++trace_.unusable_events;
    return;
  }
  trace_.events.push_back({*span, index_of_name(), static_cast<int32_t>(*device), kind, 0, k_none, -1, k_none});
}

uint32_t TraceHandler::index_of_name() {
  const auto next = static_cast<uint32_t>(trace_.names.size());
  const auto [found, is_new] = name_index_.try_emplace(item_.name, next);
  if (is_new) trace_.names.push_back(item_.name);
  return found->second;
}

void TraceHandler::keep_host_event() {
  const auto span = span_of(item_);
  if (!span) return;
  const std::pair key{item_.process.value_or(0), item_.thread.value_or(0)};
  const uint32_t thread = threads_.try_emplace(key, static_cast<uint32_t>(threads_.size())).first->second;
  const uint32_t name = index_of_name();
  HostEvent event;
  event.span = *span;
  event.name = name;
  event.thread = thread;
  trace_.host_events.push_back(event);
  if (!item_.stated_class.empty()) trace_.stated_classes.try_emplace(name, item_.stated_class);
}

void TraceHandler::keep_mark() {
  const auto step = parse_whole(std::string_view(item_.name).substr(k_step_mark.size()));
  const auto span = span_of(item_);
  if (!step || !span) return;
  if (item_.category == "gpu_user_annotation" && item_.process && *item_.process >= 0 &&
      *item_.process <= std::numeric_limits<int32_t>::max())
    trace_.marks.push_back({*step, static_cast<int32_t>(*item_.process), *span});
  else if (is_host_annotation(item_.category))
    trace_.marks.push_back({*step, std::nullopt, *span});
}

// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error while parsing value - ..."
std::string_view reason_of(std::string_view problem) {
  const size_t colon = problem.find(": ");
  return colon == std::string_view::npos ? problem : problem.substr(colon + 2);
}

}  // namespace

Trace read_chrome_trace(std::string_view bytes, std::string_view where, TraceContent content) {
  TraceCharacters characters(bytes, where);
  Trace trace;
  TraceHandler handler(trace, content);
  const std::string place(where);
  const bool whole = nlohmann::json::sax_parse(TraceIterator(characters), TraceIterator(), &handler);
  if (!whole && characters.is_at_end())
    throw Error(Problem{fmt::format("is truncated: the JSON text ends at byte {}", characters.position()), place,
                        "record the trace again and let the profiler finish writing"});
  if (!whole)
    throw Error(Problem{fmt::format("is not valid JSON at byte {}: {}", characters.position(),
                                    printable(reason_of(handler.problem())).substr(0, 160)),
                        place, ""});
  if (!handler.has_events()) throw Error(Problem{"is JSON, but not a Chrome trace: it has no traceEvents", place, ""});
  return trace;
}

std::optional<int64_t> parse_microseconds(std::string_view text) {
  const bool negative = text.starts_with('-');
  std::string_view digits = negative ? text.substr(1) : text;
  int64_t whole = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error != std::errc() || digits.starts_with('-') || whole > k_max_nanoseconds / 1000 - 1) return std::nullopt;
  digits.remove_prefix(static_cast<size_t>(end - digits.data()));
  int64_t nanoseconds = whole * 1000;
  if (digits.starts_with('.')) {
    double fraction = 0.0;
    const auto [stop, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), fraction, std::chars_format::fixed);
    if (failure != std::errc()) return std::nullopt;
    nanoseconds += std::llround(fraction * 1000.0);
    digits.remove_prefix(static_cast<size_t>(stop - digits.data()));
  }
  if (!digits.empty()) {  // an exponent: no profiler writes one where digits matter
    double value = 0.0;
    const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool fits = failure == std::errc() && stop == text.data() + text.size() && std::fabs(value) < 4e15;
    return fits ? std::optional<int64_t>(std::llround(value * 1000.0)) : std::nullopt;
  }
  return negative ? -nanoseconds : nanoseconds;
}

}  // namespace tprimat::logs

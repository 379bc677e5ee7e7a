#include "trace/kineto_event.h"

#include <limits>

#include "text/words.h"
#include "trace/chrome_trace.h"

namespace tprimat::logs {
namespace {

struct FieldName {
  std::string_view key;
  EventField field;
};
constexpr FieldName k_fields[] = {
    {"ph", EventField::phase},     {"cat", EventField::category}, {"name", EventField::name},
    {"pid", EventField::process},  {"tid", EventField::thread},   {"ts", EventField::begin},
    {"dur", EventField::duration},
};
// Keys of "args": of Kineto today, of its first releases, and of our own trainer.
constexpr FieldName k_arguments[] = {
    {"device", EventField::device},
    {"stream", EventField::stream},
    {"correlation", EventField::correlation},
    {"External id", EventField::external},
    {"external id", EventField::external},
    {"Fwd thread id", EventField::forward_thread},
    {"Sequence number", EventField::sequence},
    {"Input Dims", EventField::shapes},
    {"Input dims", EventField::shapes},
    {"shapes", EventField::shapes},
    {"Input type", EventField::types},
    {"class", EventField::stated_class},
    {"phase", EventField::stated_phase},
    {"layer", EventField::layer},
    {"flops", EventField::flops},
    {"bytes", EventField::bytes},
    {"Collective name", EventField::collective},
    {"In msg nelems", EventField::elements_in},
    {"dtype", EventField::element_type},
    {"Group size", EventField::group_size},
    {"Process Group Name", EventField::group_name},
    {"Process Group Description", EventField::group_description},
};

// Finds the field of a key: a hash table over its length, first and last character, built at compile time.
template <size_t N>
class FieldTable {
 public:
  constexpr explicit FieldTable(const FieldName (&names)[N]) {
    for (const FieldName& each : names) {
      size_t at = slot(each.key);
      while (!table_[at].key.empty()) at = (at + 1) % k_slots;
      table_[at] = each;
    }
  }
  const FieldName* find(std::string_view key) const {
    if (key.empty()) return nullptr;
    for (size_t at = slot(key); !table_[at].key.empty(); at = (at + 1) % k_slots)
      if (table_[at].key == key) return &table_[at];
    return nullptr;
  }

 private:
  static constexpr size_t k_slots = 128;
  static constexpr size_t slot(std::string_view key) {
    return (key.size() * 7 + static_cast<unsigned char>(key.back()) * 3 + static_cast<unsigned char>(key.front())) %
           k_slots;
  }
  std::array<FieldName, k_slots> table_{};
};
constexpr FieldTable k_field_table(k_fields);
constexpr FieldTable k_argument_table(k_arguments);

struct CategoryName {
  std::string_view name;
  EventCategory category;
};
// Of Kineto today and, with a capital, of its first releases; the most frequent first.
constexpr CategoryName k_categories[] = {
    {"cpu_op", EventCategory::operation},
    {"python_function", EventCategory::python},
    {"cuda_runtime", EventCategory::runtime},
    {"kernel", EventCategory::kernel},
    {"gpu_memcpy", EventCategory::memory_copy},
    {"gpu_memset", EventCategory::memory_set},
    {"user_annotation", EventCategory::annotation},
    {"gpu_user_annotation", EventCategory::gpu_annotation},
    {"cuda_driver", EventCategory::runtime},
    {"hip_runtime", EventCategory::runtime},
    {"hip_driver", EventCategory::runtime},
    {"Trace", EventCategory::recording},
    {"overhead", EventCategory::recording},
    {"Operator", EventCategory::operation},
    {"Runtime", EventCategory::runtime},
    {"Kernel", EventCategory::kernel},
    {"Memcpy", EventCategory::memory_copy},
    {"Memset", EventCategory::memory_set},
};

}  // namespace

void KinetoEvent::read(JsonCursor& cursor) {
  present_ = 0;
  if (cursor.peek() != '{') {  // an element that is no event
    cursor.value();
    return;
  }
  cursor.members([&](std::string_view key) {
    if (key == "args") return read_arguments(cursor);
    const FieldName* const field = k_field_table.find(key);
    const JsonValue value = cursor.value();
    if (field != nullptr) set(field->field, value);
  });
}

void KinetoEvent::read_arguments(JsonCursor& cursor) {
  if (cursor.peek() != '{') {
    cursor.value();
    return;
  }
  cursor.members([&](std::string_view key) {
    const FieldName* const field = k_argument_table.find(key);
    const JsonValue value = cursor.value();
    if (field != nullptr) set(field->field, value);
  });
}

std::optional<int64_t> KinetoEvent::whole(EventField field) const {
  return has(field) ? parse_number<int64_t>(value(field).raw) : std::nullopt;
}

EventCategory KinetoEvent::category() const {
  const std::string_view text = raw(EventField::category);
  for (const CategoryName& each : k_categories)
    if (each.name == text) return each.category;
  return EventCategory::none;
}

std::optional<Span> KinetoEvent::span() const {
  if (!has(EventField::begin) || !has(EventField::duration)) return std::nullopt;
  const auto begin = parse_microseconds(raw(EventField::begin));
  const auto duration = parse_microseconds(raw(EventField::duration));
  if (!begin || !duration || *begin < 0 || *duration < 0) return std::nullopt;
  return Span{*begin, *begin + *duration};
}

std::optional<int32_t> KinetoEvent::device() const {
  const auto device = has(EventField::device) ? whole(EventField::device) : whole(EventField::process);
  if (!device || *device < 0 || *device > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return static_cast<int32_t>(*device);
}

}  // namespace tprimat::logs

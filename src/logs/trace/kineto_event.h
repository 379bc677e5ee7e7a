#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trace/json_cursor.h"
#include "trace/trace.h"

namespace tprimat::logs {

// What the project reads of an event of a Chrome trace. Fields from `device` on stand in its "args".
enum class EventField : uint8_t {
  phase,  // of the format: "X" is an event with a duration
  category,
  name,
  process,
  thread,
  begin,
  duration,
  device,
  stream,
  correlation,     // the same number on a launch and on what it launched
  external,        // number of the operation that launched
  forward_thread,  // of an operation: 0 where it is one of the forward pass, else of the backward pass
  shapes,
  types,
  sequence,  // the same on an operation and on its gradient
  stated_class,
  stated_phase,
  layer,
  flops,
  bytes,
  collective,
  elements_in,
  element_type,
  group_size,
  group_name,
  group_description,
};
inline constexpr size_t k_event_fields = static_cast<size_t>(EventField::group_description) + 1;

enum class EventCategory : uint8_t {
  none,
  kernel,
  memory_copy,
  memory_set,
  operation,
  runtime,
  annotation,
  python,
  gpu_annotation,
  recording,  // the whole recording, or its own cost
};

// One event while it is read: views into the text.
class KinetoEvent {
 public:
  void read(JsonCursor& cursor);

  bool has(EventField field) const { return (present_ >> static_cast<unsigned>(field) & 1U) != 0; }
  const JsonValue& value(EventField field) const { return values_[static_cast<size_t>(field)]; }
  std::string_view raw(EventField field) const { return has(field) ? value(field).raw : std::string_view(); }
  std::string text(EventField field) const { return has(field) ? value(field).text() : std::string(); }
  std::optional<int64_t> whole(EventField field) const;

  EventCategory category() const;
  std::optional<Span> span() const;
  std::optional<int32_t> device() const;  // nothing where it is no number of a GPU

 private:
  void read_arguments(JsonCursor& cursor);
  void set(EventField field, const JsonValue& value) {
    values_[static_cast<size_t>(field)] = value;
    present_ |= 1U << static_cast<unsigned>(field);
  }

  std::array<JsonValue, k_event_fields> values_;
  uint32_t present_ = 0;
};

// "[[2048, 4096], [4096, 14336]]" and "["c10::BFloat16", "c10::BFloat16"]" -> "[2048,4096] [4096,14336] bf16"; inputs
// without dimensions are left out.
std::string describe_shapes(std::string_view dimensions, std::string_view types);

// The call that the event's arguments describe: nothing where they describe none.
std::optional<CollectiveCall> collective_of(const KinetoEvent& event);

// "allreduce", "AllReduce_Sum", "_allgather_base", "nccl:all_reduce" -> "all_reduce"; nothing for another word.
std::string collective_operation(std::string_view text);

}  // namespace tprimat::logs

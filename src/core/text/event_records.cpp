#include "text/event_records.h"

#include "base/checksum.h"
#include "text/proto.h"

namespace tprimat {
namespace {

// tensorflow/core/util/event.proto and framework/summary.proto
enum EventField : uint32_t { k_wall_time = 1, k_step = 2, k_file_version = 3, k_summary = 5, k_session_log = 7 };
enum SummaryField : uint32_t { k_value = 1 };
enum ValueField : uint32_t { k_tag = 1, k_simple_value = 2 };
enum SessionField : uint32_t { k_status = 1 };
constexpr uint64_t k_session_start = 1;

std::string bytes_of(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// TFRecord: u64 length, its masked CRC-32C, the data, its masked CRC-32C.
std::string make_record(const ProtoMessage& event) {
  const std::string& data = event.bytes();
  const std::string length = bytes_of(data.size(), 8);
  return length + bytes_of(masked_crc32c(length), 4) + data + bytes_of(masked_crc32c(data), 4);
}

ProtoMessage make_event(int64_t step, double unix_time) {
  return ProtoMessage().put_double(k_wall_time, unix_time).put_varint(k_step, static_cast<uint64_t>(step));
}

}  // namespace

std::string make_version_record(double unix_time) {
  return make_record(ProtoMessage().put_double(k_wall_time, unix_time).put_bytes(k_file_version, "brain.Event:2"));
}

std::string make_restart_record(int64_t step, double unix_time) {
  const ProtoMessage start = ProtoMessage().put_varint(k_status, k_session_start);
  return make_record(make_event(step, unix_time).put_bytes(k_session_log, start.bytes()));
}

std::string make_step_record(int64_t step, double unix_time, std::span<const EventScalar> scalars) {
  ProtoMessage summary;
  for (const EventScalar& scalar : scalars) {
    const ProtoMessage value =
        ProtoMessage().put_bytes(k_tag, scalar.tag).put_float(k_simple_value, static_cast<float>(scalar.value));
    summary.put_bytes(k_value, value.bytes());
  }
  return make_record(make_event(step, unix_time).put_bytes(k_summary, summary.bytes()));
}

}  // namespace tprimat

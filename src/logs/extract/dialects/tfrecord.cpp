#include "extract/dialects/tfrecord.h"

#include <bit>

#include "base/checksum.h"
#include "text/proto.h"

namespace tprimat::logs {
namespace {

double as_float(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

enum TensorType : uint64_t { k_float = 1, k_double = 2, k_int32 = 3, k_int64 = 9 };

Figure number_from_bytes(uint64_t type, std::string_view bytes) {
  if (type == k_float && bytes.size() >= 4) return as_float(little_endian(bytes.substr(0, 4)));
  if (type == k_double && bytes.size() >= 8) return std::bit_cast<double>(little_endian(bytes.substr(0, 8)));
  if (type == k_int32 && bytes.size() >= 4)
    return static_cast<double>(static_cast<int32_t>(little_endian(bytes.substr(0, 4))));
  if (type == k_int64 && bytes.size() >= 8)
    return static_cast<double>(static_cast<int64_t>(little_endian(bytes.substr(0, 8))));
  return {};
}

// TensorProto: 1 dtype, 4 tensor_content, 5 float_val, 6 double_val, 7 int_val, 10 int64_val. A field's first element.
Figure first_element(const ProtoField& field, uint64_t type) {
  const bool packed = !field.bytes.empty();
  if (field.number == 4) return number_from_bytes(type, field.bytes);
  if (field.number == 5) return packed ? number_from_bytes(k_float, field.bytes) : Figure(as_float(field.value));
  if (field.number == 6)
    return packed ? number_from_bytes(k_double, field.bytes) : Figure(std::bit_cast<double>(field.value));
  if (field.number != 7 && field.number != 10) return {};
  std::string_view bytes = field.bytes;
  const auto first = packed ? take_varint(bytes) : std::optional<uint64_t>(field.value);
  return first ? Figure(static_cast<double>(static_cast<int64_t>(*first))) : Figure();
}

Figure parse_tensor(std::string_view message) {
  uint64_t type = 0;
  Figure value;
  while (const auto field = take_proto_field(message)) {
    if (field->number == 1) type = field->value;
    if (!value) value = first_element(*field, type);
  }
  return value;
}

}  // namespace

std::optional<std::string_view> TfRecords::next() {
  if (end_ != End::none) return std::nullopt;
  const auto stop = [&](End end) {
    end_ = end;
    return std::optional<std::string_view>();
  };
  if (rest_.empty()) return stop(End::clean);
  if (rest_.size() < 12) return stop(End::cut);
  const std::string_view length_bytes = take_bytes(rest_, 8);
  if (masked_crc32c(length_bytes) != little_endian(take_bytes(rest_, 4))) return stop(End::corrupt);
  const uint64_t length = little_endian(length_bytes);
  if (rest_.size() < 4 || length > rest_.size() - 4) return stop(End::cut);
  const std::string_view data = take_bytes(rest_, length);
  if (masked_crc32c(data) != little_endian(take_bytes(rest_, 4))) return stop(End::corrupt);
  return data;
}

// Event: 1 wall_time (double), 2 step (int64), 3 file_version, 5 summary.
std::optional<TfEvent> parse_tf_event(std::string_view message) {
  TfEvent event;
  bool any = false;
  while (const auto field = take_proto_field(message)) {
    any = true;
    if (field->number == 1) event.wall_time = std::bit_cast<double>(field->value);
    if (field->number == 2) event.step = static_cast<int64_t>(field->value);
    if (field->number == 5) event.summary = field->bytes;
  }
  return any ? std::optional(event) : std::nullopt;
}

// Summary: 1 value, of which 1 tag, 2 simple_value (float), 8 tensor.
std::optional<TfScalar> take_scalar(std::string_view& summary) {
  while (const auto field = take_proto_field(summary)) {
    if (field->number != 1) continue;
    TfScalar scalar;
    std::string_view value = field->bytes;
    while (const auto part = take_proto_field(value)) {
      if (part->number == 1) scalar.tag = part->bytes;
      if (part->number == 2 && part->bytes.empty()) scalar.value = as_float(part->value);
      if (part->number == 8) scalar.value = parse_tensor(part->bytes);
    }
    return scalar;
  }
  return std::nullopt;
}

}  // namespace tprimat::logs

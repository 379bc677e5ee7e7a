#include "text/proto.h"

namespace tprimat {

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

std::string_view take_bytes(std::string_view& text, size_t count) {
  const std::string_view taken = text.substr(0, count);
  text.remove_prefix(count);
  return taken;
}

std::optional<uint64_t> take_varint(std::string_view& message) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !message.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(message.front());
    message.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

std::optional<ProtoField> take_proto_field(std::string_view& message) {
  const auto key = take_varint(message);
  if (!key || *key >> 3 == 0 || *key >> 3 > 0x1fffffff) return std::nullopt;
  ProtoField field{static_cast<uint32_t>(*key >> 3), 0, {}};
  const uint64_t wire_type = *key & 7;
  if (wire_type == 0) {
    const auto value = take_varint(message);
    if (!value) return std::nullopt;
    field.value = *value;
  } else if (wire_type == 1 || wire_type == 5) {
    const size_t size = wire_type == 1 ? 8 : 4;
    if (message.size() < size) return std::nullopt;
    field.value = little_endian(take_bytes(message, size));
  } else if (wire_type == 2) {
    const auto size = take_varint(message);
    if (!size || *size > message.size()) return std::nullopt;
    field.bytes = take_bytes(message, *size);
  } else {
    return std::nullopt;  // groups, which are obsolete
  }
  return field;
}

}  // namespace tprimat

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tprimat {

// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding), as far as reading foreign
// messages needs it. A taker cuts what it returns off the front of its argument.
struct ProtoField {
  uint32_t number = 0;
  uint64_t value = 0;      // of a varint or fixed field, as its bits
  std::string_view bytes;  // of a length-delimited one
};

// The next field of a message; nothing at its end, or where it is no message. Groups count as the latter.
std::optional<ProtoField> take_proto_field(std::string_view& message);

std::optional<uint64_t> take_varint(std::string_view& message);
std::string_view take_bytes(std::string_view& text, size_t count);

// The number that up to 8 bytes hold, least significant first.
uint64_t little_endian(std::string_view bytes);

}  // namespace tprimat

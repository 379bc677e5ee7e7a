#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tprimat {

// The wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding), as far as reading foreign
// messages needs it. A take_ function removes what it returns from the front of its argument.
struct ProtoField {
  uint32_t number = 0;
  uint64_t value = 0;      // of a varint or fixed field, as its bits
  std::string_view bytes;  // of a length-delimited one
};

// The next field of a message; nothing at its end, for malformed bytes and for groups.
std::optional<ProtoField> take_proto_field(std::string_view& message);

std::optional<uint64_t> take_varint(std::string_view& message);
std::string_view take_bytes(std::string_view& text, size_t count);

// The number that up to 8 bytes hold, least significant first.
uint64_t little_endian(std::string_view bytes);

// A message to be written. On the wire a field is varint(number·8 + type) and its value; type 0 is a varint, 1 eight
// bytes, 2 a length and bytes, 5 four bytes.
class ProtoMessage {
 public:
  ProtoMessage& put_varint(uint32_t field, uint64_t value) { return key(field, 0).varint(value); }
  ProtoMessage& put_double(uint32_t field, double value) { return key(field, 1).fixed(std::bit_cast<uint64_t>(value)); }
  ProtoMessage& put_float(uint32_t field, float value) { return key(field, 5).fixed(std::bit_cast<uint32_t>(value)); }
  ProtoMessage& put_bytes(uint32_t field, std::string_view value) {
    key(field, 2).varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  ProtoMessage& key(uint32_t field, uint32_t type) { return varint(field << 3 | type); }
  ProtoMessage& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  template <class Bits>
  ProtoMessage& fixed(Bits bits) {
    for (size_t i = 0; i < sizeof bits; ++i) bytes_ += static_cast<char>(bits >> (8 * i));
    return *this;
  }

  std::string bytes_;
};

}  // namespace tprimat

#include "comm/tcp/rendezvous_messages.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr uint64_t k_hello_magic = 0x31'4b4e'4152'5054;    // "TPRANK1"
constexpr uint64_t k_message_magic = 0x31'4452'4f57'5054;  // "TPWORD1"
constexpr size_t k_version_bytes = 32;
constexpr size_t k_place_bytes = 18;

// Numbers are written with their lowest byte first, whatever the machine.
class ByteWriter {
 public:
  explicit ByteWriter(std::span<std::byte> bytes) : left_(bytes) {}
  template <class T>
  void number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) left_[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
    left_ = left_.subspan(sizeof(T));
  }
  void raw(std::span<const uint8_t> bytes) {
    for (const uint8_t each : bytes) number(each);
  }
  void text(const std::string& text, size_t width) {
    for (size_t i = 0; i < width; ++i) number(static_cast<uint8_t>(i < text.size() && i + 1 < width ? text[i] : '\0'));
  }
  size_t left() const { return left_.size(); }

 private:
  std::span<std::byte> left_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}
  template <class T>
  T number() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<uint64_t>(left_[i]) << (8 * i);
    left_ = left_.subspan(sizeof(T));
    return static_cast<T>(value);
  }
  void raw(std::span<uint8_t> bytes) {
    for (uint8_t& each : bytes) each = number<uint8_t>();
  }
  // Up to the first zero; what is not printable is of no version of ours.
  std::optional<std::string> text(size_t width) {
    std::string text;
    for (size_t i = 0; i < width; ++i) text += static_cast<char>(number<uint8_t>());
    text.resize(std::min(text.find('\0'), text.size()));
    const bool is_printable = std::all_of(text.begin(), text.end(), [](char each) { return each > ' ' && each < 127; });
    return is_printable && text.size() < width ? std::optional(text) : std::nullopt;
  }

 private:
  std::span<const std::byte> left_;
};

}  // namespace

std::array<std::byte, k_hello_bytes> print_hello(const RendezvousHello& hello) {
  std::array<std::byte, k_hello_bytes> bytes{};
  ByteWriter writer(bytes);
  writer.number(k_hello_magic);
  writer.number(k_rendezvous_protocol);
  writer.number(static_cast<uint32_t>(hello.purpose));
  for (const uint32_t each : {hello.size, hello.rank, hello.to, uint32_t{hello.port}}) writer.number(each);
  writer.number(hello.run);
  writer.raw(hello.token);
  writer.text(hello.version, k_version_bytes);
  CHECK(writer.left() == 8);  // for what a later protocol adds
  return bytes;
}

std::optional<RendezvousHello> parse_hello(std::span<const std::byte> bytes) {
  if (bytes.size() != k_hello_bytes) return std::nullopt;
  ByteReader reader(bytes);
  if (reader.number<uint64_t>() != k_hello_magic || reader.number<uint32_t>() != k_rendezvous_protocol)
    return std::nullopt;
  RendezvousHello hello;
  const auto purpose = reader.number<uint32_t>();
  if (purpose != 1 && purpose != 2) return std::nullopt;
  hello.purpose = static_cast<RendezvousHello::Purpose>(purpose);
  hello.size = reader.number<uint32_t>();
  hello.rank = reader.number<uint32_t>();
  hello.to = reader.number<uint32_t>();
  const auto port = reader.number<uint32_t>();
  hello.port = static_cast<uint16_t>(port);
  hello.run = reader.number<uint64_t>();
  reader.raw(hello.token);
  const auto version = reader.text(k_version_bytes);
  if (!version || port > 0xffff || hello.size > k_max_tcp_ranks || hello.rank >= hello.size || hello.to >= hello.size)
    return std::nullopt;
  hello.version = *version;
  return hello;
}

std::array<std::byte, k_message_bytes> print_message(const RendezvousMessage& message) {
  std::array<std::byte, k_message_bytes> bytes{};
  ByteWriter writer(bytes);
  writer.number(k_message_magic);
  writer.number(k_rendezvous_protocol);
  for (const uint32_t each : {static_cast<uint32_t>(message.verdict), message.number, message.first})
    writer.number(each);
  writer.text(message.version, k_version_bytes);
  CHECK(writer.left() == 0);
  return bytes;
}

std::optional<RendezvousMessage> parse_message(std::span<const std::byte> bytes) {
  if (bytes.size() != k_message_bytes) return std::nullopt;
  ByteReader reader(bytes);
  if (reader.number<uint64_t>() != k_message_magic || reader.number<uint32_t>() != k_rendezvous_protocol)
    return std::nullopt;
  RendezvousMessage message;
  const auto verdict = reader.number<uint32_t>();
  if (verdict < 1 || verdict > static_cast<uint32_t>(RendezvousMessage::Verdict::missing)) return std::nullopt;
  message.verdict = static_cast<RendezvousMessage::Verdict>(verdict);
  message.number = reader.number<uint32_t>();
  message.first = reader.number<uint32_t>();
  const auto version = reader.text(k_version_bytes);
  if (!version) return std::nullopt;
  message.version = *version;
  return message;
}

size_t table_bytes(int ranks) { return sizeof(RunToken) + static_cast<size_t>(ranks) * k_place_bytes; }

std::vector<std::byte> print_table(const RendezvousTable& table) {
  std::vector<std::byte> bytes(table_bytes(static_cast<int>(table.places.size())));
  ByteWriter writer(bytes);
  writer.raw(table.token);
  for (const HostAddress& place : table.places) {
    writer.raw(place.bytes);
    writer.number(place.port);
  }
  return bytes;
}

std::optional<RendezvousTable> parse_table(std::span<const std::byte> bytes, int ranks) {
  if (ranks < 1 || ranks > k_max_tcp_ranks || bytes.size() != table_bytes(ranks)) return std::nullopt;
  ByteReader reader(bytes);
  RendezvousTable table;
  reader.raw(table.token);
  for (int rank = 0; rank < ranks; ++rank) {
    HostAddress& place = table.places.emplace_back();
    reader.raw(place.bytes);
    place.port = reader.number<uint16_t>();
    if (rank > 0 && place.port == 0) return std::nullopt;
  }
  return table;
}

}  // namespace tprimat::engine

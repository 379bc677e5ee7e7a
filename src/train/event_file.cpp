#include "train/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/crc32c.h"
#include "base/error.h"

namespace tprimat {
namespace {

// Protocol buffers, wire format: a field is varint(number·8 + type) and its value; type 0 is a varint, 1 eight bytes, 2
// a length and bytes, 5 four bytes.
class Message {
 public:
  Message& put_varint(uint32_t field, uint64_t value) { return key(field, 0).varint(value); }
  Message& put_double(uint32_t field, double value) { return key(field, 1).fixed(std::bit_cast<uint64_t>(value)); }
  Message& put_float(uint32_t field, float value) { return key(field, 5).fixed(std::bit_cast<uint32_t>(value)); }
  Message& put_bytes(uint32_t field, std::string_view value) {
    key(field, 2).varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Message& key(uint32_t field, uint32_t type) { return varint(field << 3 | type); }
  Message& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
    return *this;
  }
  template <class Bits>
  Message& fixed(Bits bits) {
    for (size_t i = 0; i < sizeof bits; ++i) bytes_ += static_cast<char>(bits >> (8 * i));
    return *this;
  }

  std::string bytes_;
};

// tensorflow/core/util/event.proto and framework/summary.proto
enum EventField : uint32_t { k_wall_time = 1, k_step = 2, k_file_version = 3, k_summary = 5, k_session_log = 7 };
enum SummaryField : uint32_t { k_value = 1 };
enum ValueField : uint32_t { k_tag = 1, k_simple_value = 2 };
enum SessionField : uint32_t { k_status = 1 };
constexpr uint64_t k_session_start = 1;

std::string little_endian(uint64_t value, size_t bytes) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// TFRecord: u64 length, its masked CRC-32C, the data, its masked CRC-32C.
std::string make_record(std::string_view data) {
  const std::string length = little_endian(data.size(), 8);
  return length + little_endian(masked_crc32c(length), 4) + std::string(data) + little_endian(masked_crc32c(data), 4);
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

Error cannot_write(const std::filesystem::path& path, int error) {
  const std::string hint = error == ENOSPC ? "free some space, or train without event files" : "";
  return Error(Problem{fmt::format("cannot write the event file: {}", std::strerror(error)), path.string(), hint},
               ExitStatus::work_failed);
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder, double unix_time, std::optional<int64_t> resumed_at)
    : path_(folder / fmt::format("events.out.tfevents.{:010}.{}.{}.0", static_cast<int64_t>(unix_time), host_name(),
                                 ::getpid())) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw cannot_write(path_, error.value());
  stream_.open(path_, std::ios::binary | std::ios::trunc);
  append(Message().put_double(k_wall_time, unix_time).put_bytes(k_file_version, "brain.Event:2").bytes());
  if (!resumed_at) return;
  const Message start = Message().put_varint(k_status, k_session_start);
  append(Message()
             .put_double(k_wall_time, unix_time)
             .put_varint(k_step, static_cast<uint64_t>(*resumed_at))
             .put_bytes(k_session_log, start.bytes())
             .bytes());
}

void EventFile::write_step(int64_t step, double unix_time, std::span<const EventScalar> scalars) {
  Message summary;
  for (const EventScalar& scalar : scalars) {
    const Message value =
        Message().put_bytes(k_tag, scalar.tag).put_float(k_simple_value, static_cast<float>(scalar.value));
    summary.put_bytes(k_value, value.bytes());
  }
  append(Message()
             .put_double(k_wall_time, unix_time)
             .put_varint(k_step, static_cast<uint64_t>(step))
             .put_bytes(k_summary, summary.bytes())
             .bytes());
}

void EventFile::append(std::string_view event) {
  errno = 0;
  stream_ << make_record(event) << std::flush;
  if (!stream_) throw cannot_write(path_, errno != 0 ? errno : EIO);
}

}  // namespace tprimat

#include "trace/zip_archive.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/error.h"

// Layout: .ZIP File Format Specification (APPNOTE) 6.3, sections 4.3.7 (local header), 4.3.12 (central directory) and
// 4.3.16 (end of the central directory).
namespace tprimat::logs {
namespace {

constexpr uint32_t k_local_signature = 0x04034b50, k_member_signature = 0x02014b50, k_end_signature = 0x06054b50;
constexpr uint64_t k_local_bytes = 30, k_member_bytes = 46, k_end_bytes = 22;
constexpr uint64_t k_longest_comment = 65535;
constexpr uint64_t k_smallest_buffer = 64 * 1024;

enum Method : uint16_t { stored = 0, deflated = 8 };

}  // namespace

ZipArchive::ZipArchive(std::string_view bytes, std::string_view where) : bytes_(bytes), where_(where) {
  read_directory();
}

void ZipArchive::fail(std::string_view what) const { throw Error(Problem{std::string(what), where_, ""}); }

std::string_view ZipArchive::slice(uint64_t at, uint64_t length) const {
  if (at > bytes_.size() || length > bytes_.size() - at) fail("is a zip file, but broken or cut off");
  return bytes_.substr(at, length);
}

uint64_t ZipArchive::number(uint64_t at, int bytes) const {
  const std::string_view text = slice(at, static_cast<uint64_t>(bytes));
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[static_cast<size_t>(i)]);
  return value;
}

// The record stands at the end, before a comment of unknown length.
uint64_t ZipArchive::find_directory_end() const {
  if (bytes_.size() < k_end_bytes) fail("is too short for a zip file");
  const uint64_t last = bytes_.size() - k_end_bytes;
  const uint64_t first = last > k_longest_comment ? last - k_longest_comment : 0;
  for (uint64_t at = last + 1; at-- > first;)
    if (number(at, 4) == k_end_signature) return at;
  fail("is no zip file, or cut off: the directory at its end is missing");
}

void ZipArchive::read_directory() {
  const uint64_t end = find_directory_end();
  const uint64_t count = number(end + 10, 2);
  uint64_t at = number(end + 16, 4);
  for (uint64_t i = 0; i < count; ++i) {
    if (number(at, 4) != k_member_signature) fail("is a zip file with a broken directory");
    const uint64_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
    Member member;
    member.method = static_cast<uint16_t>(number(at + 10, 2));
    member.packed_bytes = number(at + 20, 4);
    member.bytes = number(at + 24, 4);
    member.offset = number(at + 42, 4);
    member.name = slice(at + k_member_bytes, name);
    members_.push_back(std::move(member));
    at += k_member_bytes + name + extra + comment;
  }
}

const ZipArchive::Member* ZipArchive::find(std::string_view name) const {
  const auto found =
      std::find_if(members_.begin(), members_.end(), [&](const auto& each) { return each.name == name; });
  return found == members_.end() ? nullptr : &*found;
}

namespace {

// At most `most_bytes` are unpacked; nothing when the data are broken or longer than that.
bool inflate_raw(std::string_view packed, uint64_t most_bytes, std::string& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) return false;  // negative: no header
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());  // a zip field of 32 bits
  int result = Z_OK;
  // What the directory says of the size need not be true, so the buffer grows with what is really there.
  for (uint64_t size = 0; result == Z_OK && size <= most_bytes;) {
    out.resize(std::min(std::max(size * 2, k_smallest_buffer), most_bytes + 1));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + size);
    stream.avail_out = static_cast<uInt>(out.size() - size);
    result = ::inflate(&stream, Z_NO_FLUSH);
    size = out.size() - stream.avail_out;
    if (result == Z_OK && stream.avail_out > 0) break;  // the input ended before its end mark
  }
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  return result == Z_STREAM_END && out.size() <= most_bytes;
}

}  // namespace

std::string ZipArchive::read(const Member& member, uint64_t most_bytes) const {
  most_bytes = std::min<uint64_t>(most_bytes, std::numeric_limits<uint32_t>::max() / 4);
  if (member.bytes > most_bytes)
    fail(fmt::format("holds {} of {} MB; more than {} MB are not read", member.name, member.bytes / 1000000,
                     most_bytes / 1000000));
  if (number(member.offset, 4) != k_local_signature) fail("is a zip file with a broken directory");
  const uint64_t names = number(member.offset + 26, 2) + number(member.offset + 28, 2);
  const std::string_view packed = slice(member.offset + k_local_bytes + names, member.packed_bytes);
  if (member.method == stored && packed.size() <= most_bytes) return std::string(packed);
  std::string out;
  if (member.method != deflated || !inflate_raw(packed, most_bytes, out))
    fail(fmt::format("holds {}, which is broken, packed in an unknown way or larger than {} MB", member.name,
                     most_bytes / 1000000));
  return out;
}

}  // namespace tprimat::logs

#include "base/gzip.h"

#include <zlib.h>

#include <iterator>
#include <utility>

#include "base/check.h"

namespace tprimat {
namespace {

constexpr int k_level = 4;                   // profiler traces: a third larger than at 9, in a tenth of the time
constexpr int k_gzip_window = 15 + 16;       // zlib's largest window, and gzip's header and trailer
constexpr int k_memory_level = 8;            // zlib's default
constexpr size_t k_piece = size_t{1} << 20;  // zlib counts in 32 bits

// Takes the next piece off the bytes.
void feed(z_stream& stream, std::string_view& bytes) {
  const std::string_view next = bytes.substr(0, k_piece);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
  stream.avail_in = static_cast<uInt>(next.size());
  bytes.remove_prefix(next.size());
}

}  // namespace

std::string gzip(std::string_view bytes) {
  z_stream stream = {};
  CHECK(::deflateInit2(&stream, k_level, Z_DEFLATED, k_gzip_window, k_memory_level, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string compressed;
  std::string piece(k_piece, '\0');
  for (int state = Z_OK; state != Z_STREAM_END;) {
    if (stream.avail_in == 0) feed(stream, bytes);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = ::deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    CHECK(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR);
    compressed.append(piece, 0, piece.size() - stream.avail_out);
  }
  ::deflateEnd(&stream);
  return compressed;
}

std::optional<std::string> gunzip(std::string_view bytes, int64_t limit) {
  z_stream stream = {};
  CHECK(::inflateInit2(&stream, k_gzip_window) == Z_OK);
  std::string text;
  std::string piece(k_piece, '\0');
  int state = Z_OK;
  while (state == Z_OK && std::ssize(text) <= limit) {  // Z_BUF_ERROR where nothing is left to go on with
    if (stream.avail_in == 0) feed(stream, bytes);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = ::inflate(&stream, Z_NO_FLUSH);
    text.append(piece, 0, piece.size() - stream.avail_out);
  }
  const bool is_whole = state == Z_STREAM_END && stream.avail_in == 0 && bytes.empty() && std::ssize(text) <= limit;
  ::inflateEnd(&stream);
  return is_whole ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace tprimat

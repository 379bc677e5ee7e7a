#pragma once

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::logs {

// One complete event of a Chrome trace; times in microseconds.
inline std::string trace_event(std::string_view category, std::string_view name, double begin, double duration,
                               int device = 0, int stream = 7) {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, )"
                     R"("args": {{"External id": 1, "device": {}, "stream": {}, "grid": [1, 2, {{"device": 99}}]}}}})",
                     category, name, device, stream, begin, duration, device, stream);
}

inline std::string trace_of(const std::vector<std::string>& events) {
  return fmt::format("{{\"schemaVersion\": 1, \"traceEvents\": [\n{}\n], \"traceName\": \"x\"}}",
                     fmt::join(events, ",\n"));
}

// window_bits: 15 + 16 makes gzip, -15 the bare data of a zip file.
inline std::string deflate_bytes(std::string_view text, int window_bits) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib does not start");
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("zlib does not end");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
inline std::string gzip_bytes(std::string_view text) { return deflate_bytes(text, 15 + 16); }

inline std::string zstd_bytes(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

}  // namespace tprimat::logs

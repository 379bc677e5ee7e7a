#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tprimat::engine {

// The bytes of a file from its beginning, decompressed when it is gzip or zstd by its first bytes.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  virtual size_t read(char* into, size_t size) = 0;  // fewer only at the end; throws Error that names the file
  virtual int64_t file_bytes_read() const = 0;       // as they lie on the disk
};
std::unique_ptr<ByteStream> open_byte_stream(const std::string& path);  // throws Error

}  // namespace tprimat::engine

#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tprimat::logs {

// The content of gzip or zstd bytes, piece by piece.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Empty at the end; valid until the next call. Throws Error for damaged or truncated data.
  virtual std::string_view next_piece() = 0;

 protected:
  Unpacker() = default;
};

bool is_packed(std::string_view bytes);

// For bytes that are packed, by their first bytes; null for others.
std::unique_ptr<Unpacker> make_unpacker(std::string_view bytes, std::string_view where);

// The whole content in memory. Throws Error for a decompression bomb.
std::string unpack(std::string_view bytes, std::string_view where);

}  // namespace tprimat::logs

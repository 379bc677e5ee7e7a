#pragma once

#include <cstdint>
#include <string_view>

namespace tprimat {

// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
uint32_t crc32c(std::string_view bytes);

// As TFRecord stores it: rotated right by 15 bits, plus a constant, so that the checksum of a record that holds
// checksums means something.
uint32_t masked_crc32c(std::string_view bytes);

// 64-bit FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/. Distinguishes texts; does not protect against forgery.
constexpr uint64_t fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace tprimat

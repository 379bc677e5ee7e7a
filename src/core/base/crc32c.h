#pragma once

#include <cstdint>
#include <string_view>

namespace tprimat {

// CRC-32C (Castagnoli; RFC 3720, appendix B.4).
uint32_t crc32c(std::string_view bytes);

// As TFRecord stores it: rotated right by 15 bits, plus a constant, so that the checksum of a record that holds
// checksums means something.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tprimat

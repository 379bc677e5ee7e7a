#include "base/checksum.h"

#include <array>

namespace tprimat {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t k_castagnoli_reversed = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? k_castagnoli_reversed : 0);
    table[i] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> k_table = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) crc = k_table[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

}  // namespace tprimat

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tprimat::engine {

// XXH3, 64 bits (https://xxhash.com, seed 0): finds damage at the rate of memory; no defence against intent.
uint64_t checksum_of(std::span<const std::byte> bytes);
uint64_t checksum_of(std::string_view bytes);

std::string checksum_text(uint64_t checksum);  // 16 hexadecimal digits

}  // namespace tprimat::engine

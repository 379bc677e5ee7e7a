#include "model_files/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace tprimat::engine {

uint64_t checksum_of(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
uint64_t checksum_of(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string checksum_text(uint64_t checksum) { return fmt::format("{:016x}", checksum); }

}  // namespace tprimat::engine

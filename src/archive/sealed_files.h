#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace tprimat {

// What an archive may hold before it is refused: a few kilobytes can claim to be terabytes.
struct ArchiveLimits {
  int64_t file_bytes = 1'000'000'000;
  int64_t all_bytes = 8'000'000'000;
  int64_t files = 200'000;
};

// The files of a tar archive (plain, gzip, zstd), one after the other, in memory: nothing is written anywhere. Throws
// Error for what is no such archive, for names that lead out of it (absolute, "..", control characters), for links and
// devices, for a name that comes twice and for what exceeds the limits.
void read_sealed_files(const std::filesystem::path& archive,
                       const std::function<void(const std::string& name, std::string content)>& visit,
                       const ArchiveLimits& limits = {});

}  // namespace tprimat

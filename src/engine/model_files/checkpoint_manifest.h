#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tprimat::engine {

// manifest.json of a checkpoint's folder. It is written last: a folder without one is no checkpoint.
struct CheckpointManifest {
  struct RankEntry {
    std::string file;  // name in the folder
    int64_t bytes = 0;
    uint64_t checksum = 0;  // of the file's head, which covers all else: RankFileTable::checksum
  };
  int64_t step = 0;
  std::vector<RankEntry> ranks;  // in the order of the ranks
  std::string state = "{}";      // JSON, the trainer's own: schedule, loss scale, data position, specification
};

constexpr std::string_view k_manifest_file = "manifest.json";

// JSON that ends with a checksum of all bytes before it.
std::string print_manifest(const CheckpointManifest& manifest);

// Throws Error for a manifest of which any byte has changed, and for one that contradicts itself.
CheckpointManifest parse_manifest(std::string_view text, const std::string& where);
CheckpointManifest read_manifest(const std::filesystem::path& checkpoint_folder);

}  // namespace tprimat::engine

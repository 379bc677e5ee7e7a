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

// The folders step_00001000 of a directory of checkpoints, newest first. They may be incomplete or damaged.
struct StepFolder {
  int64_t step = 0;
  std::filesystem::path path;
};
std::vector<StepFolder> list_step_folders(const std::filesystem::path& directory);  // empty where there is none

std::filesystem::path step_folder(const std::filesystem::path& directory, int64_t step);

// "rank_00003_of_00008.0123456789abcdef.bin": the run is part of the name, so that the files of one run never replace
// those of another.
std::string rank_file_name(uint32_t rank, uint32_t ranks, uint64_t run);

// Called once the checkpoint of `step` is complete. Removes from its folder what it does not name; of earlier steps,
// what runs that died left behind and the checkpoints beyond the newest `keep_last_n` that look whole (at least this
// one stays). Later steps are not touched. Returns a sentence for each thing that could not be removed.
std::vector<std::string> remove_old_checkpoints(const std::filesystem::path& directory, int64_t step,
                                                int64_t keep_last_n);

}  // namespace tprimat::engine

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tprimat::engine {

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

#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "trace/intervals.h"

namespace tprimat::logs {

// config.json beside the records; a figure that it does not state is absent.
struct PipelineLayout {
  std::optional<int64_t> world_size, data, tensor, expert, pipeline, virtual_stages, micro_batches, iterations;
};

// What one rank did in one iteration. Times in ns from the iteration's begin on that rank: ranks share no clock.
struct PipelineIteration {
  int64_t iteration = 0;
  int64_t total = 0;                       // length, ns
  std::optional<double> memory_gigabytes;  // as the file states it
  std::vector<Span> forward, backward;     // one per micro-batch and virtual stage, in the order in which they ran
};

struct PipelineRank {
  int64_t rank = 0;
  std::vector<PipelineIteration> iterations;  // by number
};

// Records of a pipeline that Primus writes: a folder with pp_rank_N.json, one per rank, and config.json.
struct PipelineRecords {
  PipelineLayout layout;
  std::vector<PipelineRank> ranks;  // by number; all have the same iterations and as many intervals in each
};

// Whether the folder holds a pp_rank_N.json.
bool is_pipeline_folder(const std::filesystem::path& folder);

// Throws Error with the file and the iteration for records that are damaged or contradict each other or the layout.
PipelineRecords read_pipeline_records(const std::filesystem::path& folder);

// One file; its name states the rank.
PipelineRank parse_pipeline_rank(std::string_view json, std::string_view where, int64_t rank);
PipelineLayout parse_pipeline_layout(std::string_view json, std::string_view where);

}  // namespace tprimat::logs

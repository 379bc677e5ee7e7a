#pragma once

#include <filesystem>
#include <vector>

namespace tprimat::suite {

// Traces that a framework's own PyTorch profiler left in the folder of a run, at any depth, under names of its choice:
// those of torch.profiler.tensorboard_trace_handler ("node_4711.1700000000.pt.trace.json"), and Megatron-LM's
// "torch_profile/rank-0.json.gz". Sorted; rank 0's first where the name tells the rank.
std::vector<std::filesystem::path> find_torch_traces(const std::filesystem::path& folder);

// Moves a trace, gzip or plain, to `target` as gzip. Throws Error or std::filesystem::filesystem_error.
void move_torch_trace(const std::filesystem::path& trace, const std::filesystem::path& target);

}  // namespace tprimat::suite

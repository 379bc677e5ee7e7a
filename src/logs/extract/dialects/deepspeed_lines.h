#pragma once

#include <string_view>
#include <vector>

#include "extract/log_builder.h"
#include "extract/log_line.h"

// Lines of every DeepSpeed program: its command, its configuration, its memory.
namespace tprimat::logs {

std::vector<std::string_view> deepspeed_line_anchors();

// True if the line was one of those. Facts that are known already stay.
bool read_deepspeed_line(const LogLine& line, LogBuilder& log);

// "MemAllocated=3.96GB, MaxMemAllocated=22.95GB", where a GB is 1024^3 bytes. GB = 1e9 bytes.
inline constexpr std::string_view k_deepspeed_allocated = " MemAllocated=";
Figure deepspeed_memory_after(std::string_view text, std::string_view key);

// Enters both into the log's memory of the line's rank.
void add_deepspeed_memory(const LogLine& line, LogBuilder& log);

}  // namespace tprimat::logs

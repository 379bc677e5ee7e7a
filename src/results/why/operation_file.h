#pragma once

#include <filesystem>
#include <vector>

#include "trace/operation_table.h"

namespace tprimat::results {

// A table of operations (trace/operation_table.h) from a plain, gzip or zstd file, read as a stream. Throws Error.
std::vector<logs::WorkerOperation> load_operations(const std::filesystem::path& file);

}  // namespace tprimat::results

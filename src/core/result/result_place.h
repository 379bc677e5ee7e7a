#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "result/run_result.h"

namespace tprimat {

// The path for the result of a single log: `output` if it is a .json file, else a file in that folder.
std::filesystem::path result_path(const RunResult& result, const std::string& log, const std::filesystem::path& output,
                                  bool names_attempt);

// `wanted`, or the first of `wanted`_2, `wanted`_3 ... that is not taken and holds nothing but a result of the same
// log; what else it holds, a warning names. Adds it to `taken`.
std::filesystem::path free_path(const std::filesystem::path& wanted, const RunResult& result,
                                std::set<std::filesystem::path>& taken);

}  // namespace tprimat

#pragma once

#include <filesystem>
#include <string>

#include "compare/comparison.h"
#include "process/process.h"

namespace tprimat {

enum class Drawn { yes, gnuplot_missing, failed };

// Draws the comparison into `path` (.png or .svg) with gnuplot as a child process; the image is there whole or not at
// all. What went wrong is in `complaint`, with what to do about it.
Drawn draw_plot(ProcessRunner& runner, const Comparison& comparison, const std::filesystem::path& path,
                std::string& complaint);

}  // namespace tprimat

#pragma once

#include <filesystem>
#include <string>

#include "process/process.h"
#include "report/report.h"

namespace tprimat::results {

enum class Drawn { yes, gnuplot_missing, failed };

// Runs a script that writes its image to gnuplot's standard output, with gnuplot as a child process; the image is there
// whole or not at all. What went wrong is in `complaint`, with what to do about it.
Drawn draw_script(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path,
                  std::string& complaint);

// By the ending of `path`, .png or .svg. Throws Error, naming `option`, for others.
PlotFormat require_plot_format(const std::filesystem::path& path, const std::string& option);

// The same; throws Error where gnuplot is missing (4) or fails (1).
void require_drawn(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path);

// Draws the comparison into `path` (.png or .svg) likewise.
Drawn draw_plot(ProcessRunner& runner, const Comparison& comparison, const std::filesystem::path& path,
                std::string& complaint);

}  // namespace tprimat::results

#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "process/process.h"
#include "report/report.h"

namespace tprimat::results {

// Runs a script that writes its image to gnuplot's standard output, with gnuplot as a child process; the image is
// written completely or not at all. Returns the error: gnuplot is missing (exit status 4) or fails (1).
std::optional<Error> draw_script(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path);

// The same; throws that Error.
void require_drawn(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path);

// By the ending of `path`, .png or .svg. Throws Error, naming `option`, for others.
PlotFormat require_plot_format(const std::filesystem::path& path, const std::string& option);

}  // namespace tprimat::results

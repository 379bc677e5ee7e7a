#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "process/process.h"
#include "report/plots/picture.h"

// Pictures as files. The program itself writes SVG; gnuplot or, where that is missing, matplotlib draws PNG.
namespace tprimat::results {

enum class PlotFormat { png, svg };

std::string render_svg(const Picture& picture);

// Writes a PNG, completely or not at all. Returns the error: neither gnuplot nor matplotlib is installed (exit status
// 4), or what is installed fails (1).
std::optional<Error> draw_png(ProcessRunner& runner, const Picture& picture, const std::filesystem::path& path);

// By the ending of `path`, .png or .svg. Throws Error, naming `option`, for others.
PlotFormat require_plot_format(const std::filesystem::path& path, const std::string& option);

// Writes the picture as the ending of `path` says; throws the Errors of draw_png.
void require_drawn(ProcessRunner& runner, const Picture& picture, const std::filesystem::path& path);

}  // namespace tprimat::results

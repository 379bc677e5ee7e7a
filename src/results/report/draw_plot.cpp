#include "report/draw_plot.h"

#include <fmt/format.h>

#include "base/files.h"
#include "process/process.h"
#include "report/plot_script.h"

namespace tprimat::results {
namespace {

constexpr double k_time_limit_seconds = 120;

}  // namespace

std::optional<Error> draw_script(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path) {
  const ScratchFolder folder;
  const auto file = folder.path() / "plot.gp", image = folder.path() / "image";
  write_file_atomically(file, script);
  const auto run = run_captured(runner, {"gnuplot", "-e", "set output " + quote_gnuplot(image.string()), file.string()},
                                k_time_limit_seconds);
  if (!run)
    return Error(Problem{fmt::format("cannot draw {}: gnuplot is not installed", path.string()), "",
                         "install it: sudo apt-get install gnuplot-nox"},
                 ExitStatus::missing_component);
  if (!run->exit.success() || !std::filesystem::exists(image))
    return Error(Problem{fmt::format("cannot draw {}: gnuplot ended with {}", path.string(), to_string(run->exit)), "",
                         run->output.substr(0, 400)},
                 ExitStatus::work_failed);
  write_file_atomically(path, read_file(image));
  return std::nullopt;
}

void require_drawn(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path) {
  if (const auto failure = draw_script(runner, script, path)) throw *failure;
}

PlotFormat require_plot_format(const std::filesystem::path& path, const std::string& option) {
  if (path.extension() == ".png") return PlotFormat::png;
  if (path.extension() == ".svg") return PlotFormat::svg;
  throw Error(Problem{path.string() + " cannot be drawn as a picture", option, "use a name that ends in .png or .svg"});
}

}  // namespace tprimat::results

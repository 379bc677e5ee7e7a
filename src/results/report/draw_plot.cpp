#include "report/draw_plot.h"

#include <fmt/format.h>

#include "base/files.h"
#include "report/plots/backends.h"
#include "report/plots/layout.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

constexpr double k_time_limit_seconds = 120;

// Why a program drew nothing; no reason: it is not installed.
struct Failure {
  std::string reason, output;
};

std::optional<Failure> run_program(ProcessRunner& runner, const std::vector<std::string>& command,
                                   const fs::path& image) {
  const auto run = run_captured(runner, command, k_time_limit_seconds);
  if (!run || run->exit == ExitReason{ExitReason::Kind::exited, k_no_matplotlib}) return Failure{};
  if (run->exit.success() && fs::exists(image)) return std::nullopt;
  return Failure{fmt::format("{} ended with {}", command.front(), to_string(run->exit)), run->output.substr(0, 400)};
}

std::optional<Failure> run_gnuplot(ProcessRunner& runner, const Drawing& drawing, const fs::path& folder,
                                   const fs::path& image) {
  write_file_atomically(folder / "plot.gp", render_gnuplot(drawing));
  return run_program(
      runner,
      {"gnuplot", "--default-settings", "-e", "set output " + quote_gnuplot(image.string()), folder / "plot.gp"},
      image);
}

std::optional<Failure> run_matplotlib(ProcessRunner& runner, const Drawing& drawing, const fs::path& folder,
                                      const fs::path& image) {
  write_file_atomically(folder / "draw.py", matplotlib_script());
  write_file_atomically(folder / "shapes.json", render_shapes(drawing));
  return run_program(runner, {"python3", folder / "draw.py", folder / "shapes.json", image}, image);
}

}  // namespace

std::string render_svg(const Picture& picture) { return render_svg(lay_out(picture)); }

std::optional<Error> draw_png(ProcessRunner& runner, const Picture& picture, const fs::path& path) {
  const ScratchFolder folder;
  const fs::path image = folder.path() / "image.png";
  const Drawing drawing = lay_out(picture);
  Failure failure;
  for (const auto& run : {run_gnuplot, run_matplotlib}) {
    const auto failed = run(runner, drawing, folder.path(), image);
    if (!failed) {
      write_file_atomically(path, read_file(image));
      return std::nullopt;
    }
    if (failure.reason.empty()) failure = *failed;
  }
  if (!failure.reason.empty())
    return Error(Problem{fmt::format("cannot draw {}: {}", path.string(), failure.reason), "", failure.output},
                 ExitStatus::work_failed);
  return Error(
      Problem{fmt::format("cannot draw {}: neither gnuplot nor matplotlib is installed", path.string()), "",
              "install one (sudo apt-get install gnuplot-nox, or pip install matplotlib), or name a .svg file"},
      ExitStatus::missing_component);
}

PlotFormat require_plot_format(const fs::path& path, const std::string& option) {
  if (path.extension() == ".png") return PlotFormat::png;
  if (path.extension() == ".svg") return PlotFormat::svg;
  throw Error(Problem{path.string() + " cannot be drawn as a picture", option, "use a name that ends in .png or .svg"});
}

void require_drawn(ProcessRunner& runner, const Picture& picture, const fs::path& path) {
  if (path.extension() == ".svg") return write_file_atomically(path, render_svg(picture));
  if (const auto failure = draw_png(runner, picture, path)) throw *failure;
}

}  // namespace tprimat::results

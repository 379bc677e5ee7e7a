#include "report/draw_plot.h"

#include <fmt/format.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/files.h"
#include "process/captured.h"
#include "report/gnuplot_panels.h"

namespace tprimat::results {
namespace {

constexpr double k_time_limit_seconds = 120;

class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "tprimat-plot-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(Problem{"cannot create a temporary folder", path_, "set TMPDIR to a writable folder"},
                  ExitStatus::work_failed);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::filesystem::path file(const char* name) const { return std::filesystem::path(path_) / name; }

 private:
  std::string path_;
};

}  // namespace

Drawn draw_script(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path,
                  std::string& complaint) {
  const TemporaryFolder folder;
  const auto file = folder.file("plot.gp"), image = folder.file("image");
  write_file_atomically(file, script);
  const auto run = run_captured(runner, {"gnuplot", "-e", "set output " + quote_gnuplot(image.string()), file.string()},
                                k_time_limit_seconds);
  if (!run) {
    complaint = fmt::format("cannot draw {}: gnuplot is not installed\n  install it: sudo apt-get install gnuplot-nox",
                            path.string());
    return Drawn::gnuplot_missing;
  }
  if (!run->exit.success() || !std::filesystem::exists(image)) {
    complaint = fmt::format("cannot draw {}: gnuplot ended with {}\n  {}", path.string(), to_string(run->exit),
                            run->output.substr(0, 400));
    return Drawn::failed;
  }
  write_file_atomically(path, read_file(image));
  return Drawn::yes;
}

void require_drawn(ProcessRunner& runner, const std::string& script, const std::filesystem::path& path) {
  std::string complaint;
  const Drawn drawn = draw_script(runner, script, path, complaint);
  if (drawn == Drawn::yes) return;
  throw Error(Problem{complaint, "", ""},
              drawn == Drawn::failed ? ExitStatus::work_failed : ExitStatus::missing_component);
}

PlotFormat require_plot_format(const std::filesystem::path& path, const std::string& option) {
  if (path.extension() == ".png") return PlotFormat::png;
  if (path.extension() == ".svg") return PlotFormat::svg;
  throw Error(Problem{path.string() + " cannot be drawn as a picture", option, "use a name that ends in .png or .svg"});
}

Drawn draw_plot(ProcessRunner& runner, const Comparison& comparison, const std::filesystem::path& path,
                std::string& complaint) {
  const PlotFormat format = path.extension() == ".svg" ? PlotFormat::svg : PlotFormat::png;
  return draw_script(runner, render_gnuplot(comparison, format), path, complaint);
}

}  // namespace tprimat::results

#include "report/draw_plot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "report/plots/axis.h"
#include "report/plots/backends.h"
#include "report/plots/layout.h"
#include "unit/report/sample_pictures.h"

namespace tprimat::results {
namespace {

namespace fs = std::filesystem;

// Programs that are not installed, or end with a status; a success leaves an image.
class FakePrograms : public ProcessRunner {
 public:
  explicit FakePrograms(std::map<std::string, int> statuses) : statuses_(std::move(statuses)) {}
  std::unique_ptr<ChildProcess> start(const Command& command) override {
    asked.push_back(command.argv.at(0)), last = command.argv;
    if (!statuses_.contains(asked.back()))
      throw Error(Problem{"is not in PATH", "", ""}, ExitStatus::missing_component);
    const int status = statuses_.at(asked.back());
    if (status == 0) write_file_atomically(fs::path(command.argv.back()).parent_path() / "image.png", asked.back());
    return std::make_unique<Child>(status);
  }
  std::vector<std::string> asked, last;

 private:
  struct Child : ChildProcess {
    explicit Child(int code) : status(code) {}
    pid_t pid() const override { return 1; }
    std::optional<ExitReason> poll(double, const LineSink& sink) override {
      sink("no font");
      return ExitReason{ExitReason::Kind::exited, status};
    }
    void stop() override {}
    int status;
  };
  std::map<std::string, int> statuses_;
};

class DrawPng : public ::testing::Test {
 protected:
  std::optional<Error> draw(ProcessRunner& runner) { return draw_png(runner, Picture{}, image_); }
  ScratchFolder folder_;
  fs::path image_ = folder_.path() / "plot.png";
};

TEST_F(DrawPng, AsksGnuplotFirst) {
  FakePrograms both({{"gnuplot", 0}, {"python3", 0}});
  EXPECT_FALSE(draw(both));
  EXPECT_EQ(read_file(image_), "gnuplot");
  EXPECT_EQ(both.asked.size(), 1u);
  EXPECT_EQ(both.last.at(1), "--default-settings") << "the user's own ones draw another plot, or run commands";
}

TEST(Plots, ShowEveryLossOfADivergedTraining) {
  for (const double loss : {1e31, 1e200, -1e200}) EXPECT_TRUE(is_drawable(loss, Scale::linear)) << loss;
  Range range;
  range.include(-1e299, Scale::linear), range.include(1e299, Scale::linear);
  const Range axis = choose_range({}, range);
  EXPECT_TRUE(std::isfinite(axis.high - axis.low));
  EXPECT_GT(axis.high - axis.low, 2e299);
}

TEST_F(DrawPng, AsksMatplotlibWhereGnuplotIsMissingOrFails) {
  for (const auto& programs : {std::map<std::string, int>{{"python3", 0}}, {{"gnuplot", 1}, {"python3", 0}}}) {
    FakePrograms runner(programs);
    EXPECT_FALSE(draw(runner));
    EXPECT_EQ(read_file(image_), "python3");
  }
}

TEST_F(DrawPng, NamesWhatToInstall) {
  for (const auto& programs : {std::map<std::string, int>{}, {{"python3", k_no_matplotlib}}}) {
    FakePrograms runner(programs);
    const auto error = draw(runner);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), ExitStatus::missing_component);
    EXPECT_NE(std::string(error->what()).find("neither gnuplot nor matplotlib is installed"), std::string::npos);
    for (const char* package : {"gnuplot-nox", "pip install matplotlib", ".svg"})
      EXPECT_NE(error->problems().front().hint.find(package), std::string::npos) << package;
    EXPECT_FALSE(fs::exists(image_));
  }
}

TEST_F(DrawPng, ShowsWhyAProgramFails) {
  FakePrograms runner({{"gnuplot", 3}, {"python3", k_no_matplotlib}});
  const auto error = draw(runner);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), ExitStatus::work_failed);
  EXPECT_NE(std::string(error->what()).find("gnuplot ended with exit status 3"), std::string::npos) << error->what();
  EXPECT_EQ(error->problems().front().hint, "no font\n");
  EXPECT_FALSE(fs::exists(image_));
}

TEST(Gnuplot, QuotesCannotBeEscaped) {
  EXPECT_EQ(quote_gnuplot("'a'b"), R"(''."'".'a'."'".'b')");
  EXPECT_EQ(quote_gnuplot("a\nsystem('x')"), R"('a system('."'".'x'."'".')')");
}

TEST(Gnuplot, GetsOnlyCharactersThatItsFontHas) {
  const std::string script = render_gnuplot(lay_out(hostile_picture()));
  EXPECT_EQ(script.find("加"), std::string::npos);
  EXPECT_NE(script.find("8 x □□□"), std::string::npos);
}

// The programs themselves are the judges of what they are given.
void expect_drawn(const std::string& command, const std::string& input, const std::string& script) {
  const ScratchFolder folder;
  write_file_atomically(folder.path() / "input", input);
  write_file_atomically(folder.path() / "draw.py", script);
  EXPECT_EQ(std::system(("cd " + folder.path().string() + " && " + command + " 2>errors").c_str()), 0);
  EXPECT_EQ(read_file(folder.path() / "errors"), "");
  EXPECT_TRUE(read_file(folder.path() / "image").starts_with("\x89PNG"));
  EXPECT_FALSE(fs::exists(folder.path() / "injected"));
}

std::vector<Picture> pictures_to_draw() {
  LoadedRuns runs = sample_runs(2);
  for (LoadedRun& run : runs.runs) run.result.model_info.name = "'; system('touch injected'); `touch injected` $x$ $_$";
  return {picture_of(runs), damaged_picture(),
          empty_picture(),  picture_of(sample_runs(11)),
          Picture{},        plot_scaling(sample_plans(3))};
}

TEST(Gnuplot, DrawsThem) {
  if (std::system("command -v gnuplot >/dev/null") != 0)
    GTEST_SKIP() << "gnuplot is missing: apt-get install gnuplot-nox";
  for (const Picture& picture : pictures_to_draw())
    expect_drawn("gnuplot input >image", render_gnuplot(lay_out(picture)), "");
}

// The tests' own Python packages, or the machine's.
std::string find_matplotlib() {
  for (const std::string python : {TPRIMAT_SOURCE_DIR "/build/python/bin/python3", "python3"})
    if (std::system((python + " -c 'import matplotlib' 2>/dev/null").c_str()) == 0) return python;
  return "";
}

TEST(Matplotlib, DrawsThem) {
  const std::string python = find_matplotlib();
  if (python.empty()) GTEST_SKIP() << "matplotlib is missing: apt-get install python3-matplotlib";
  for (const Picture& picture : {pictures_to_draw().front(), damaged_picture()})
    expect_drawn(python + " draw.py input image", render_shapes(lay_out(picture)), std::string(matplotlib_script()));
}

}  // namespace
}  // namespace tprimat::results

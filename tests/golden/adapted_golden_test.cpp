#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "config/load.h"
#include "render_plan.h"
#include "run/adapt.h"

// `run --framework all --adapt nearest --dry-run` of an experiment in FP8 with TP 4, on eight H100 and on eight MI300X.
// Regenerate: TPRIMAT_UPDATE_GOLDEN=1 golden_tests
namespace tprimat {
namespace {

namespace fs = std::filesystem;

const fs::path k_folder = fs::path(TPRIMAT_GOLDEN_DIR) / "launch";

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string plan_everything(Platform platform) {
  suite::ConfigSources sources;
  sources.path = (k_folder / "all_frameworks.yaml").string();
  sources.overrides = {"experiment.adapt=nearest"};
  suite::SuiteRequest request;
  request.platform = platform;
  request.all_frameworks = true;
  request.presence = suite::Presence::any;
  request.own_program = "/usr/bin/tprimat";
  const suite::SuitePlan suite = plan_suite(suite::load_experiment(sources).experiment, request, {});
  std::string text;
  for (const Problem& problem : suite.unavailable) text += "unavailable: " + to_string(problem) + "\n";
  text += suite::render_adaptations(suite);
  for (const suite::PlannedRun& run : suite.runs) text += "\n==== " + describe(run) + "\n" + render_plan(run.plan);
  return replace_all(text, fs::current_path().string(), "/here");
}

class GoldenAdapted : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ::setenv("TPRIMAT_FRAMEWORKS", "/opt/frameworks", 1); }
  void TearDown() override { ::unsetenv("TPRIMAT_FRAMEWORKS"); }
};

TEST_P(GoldenAdapted, IsAsWritten) {
  const std::string text = plan_everything(*parse_enum<Platform>(GetParam()));
  const fs::path file = k_folder / ("all_frameworks_" + std::string(GetParam()) + ".txt");
  if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(file, text);
  EXPECT_EQ(text, read_file(file));
}

INSTANTIATE_TEST_SUITE_P(Platforms, GoldenAdapted, ::testing::Values("nvd", "amd"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace tprimat

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "launch/frameworks.h"
#include "launch/profilers.h"
#include "real_flags.h"
#include "render_plan.h"

// What every framework is started with: launch/<framework>_<model>_<platform>.txt, one part per strategy. Regenerate:
// TPRIMAT_UPDATE_GOLDEN=1 golden_tests
namespace tprimat {
namespace {

namespace fs = std::filesystem;

const fs::path k_folder = fs::path(TPRIMAT_GOLDEN_DIR) / "launch";

const suite::Experiment& eight_gpus() {
  static const suite::Experiment experiment = load_launch_experiment("eight_gpus.yaml");
  return experiment;
}

suite::LaunchRequest request_for(const suite::FrameworkModule& module, const std::string& model, Platform platform,
                                 const std::string& strategy) {
  return make_request(eight_gpus(), module, {model, platform, strategy});
}

struct Case {
  std::string framework, model, platform;
};

void PrintTo(const Case& each, std::ostream* out) {
  *out << each.framework << ' ' << each.model << ' ' << each.platform;
}

std::vector<Case> list_launches() {
  std::vector<Case> cases;
  for (const suite::FrameworkModule& module : suite::framework_modules())
    for (const char* model : {"llama", "qwen", "mistral"})
      for (const char* platform : {"nvd", "amd"}) cases.push_back({std::string(enum_name(module.id)), model, platform});
  return cases;
}

class GoldenLaunch : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { ::setenv("TPRIMAT_FRAMEWORKS", "/opt/frameworks", 1); }
  void TearDown() override { ::unsetenv("TPRIMAT_FRAMEWORKS"); }
};

TEST_P(GoldenLaunch, IsAsWritten) {
  const suite::FrameworkModule& module =
      *std::find_if(suite::framework_modules().begin(), suite::framework_modules().end(),
                    [](const suite::FrameworkModule& each) { return enum_name(each.id) == GetParam().framework; });
  const Platform platform = *parse_enum<Platform>(GetParam().platform);
  std::string text;
  for (const auto& [strategy, layouts] : eight_gpus().strategies)
    text += "==== " + strategy + "\n" +
            plan_or_refusal(module, request_for(module, GetParam().model, platform, strategy)) + "\n";
  suite::LaunchRequest fp8 = request_for(module, GetParam().model, platform, "maximum_performance");
  fp8.spec.precision = Precision::fp8;
  fp8.settings.fp8_hybrid = true;
  text += "==== maximum_performance in fp8\n" + plan_or_refusal(module, fp8);
  const fs::path file = k_folder / (GetParam().framework + "_" + GetParam().model + "_" + GetParam().platform + ".txt");
  if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(file, text);
  EXPECT_EQ(text, read_file(file));
}

INSTANTIATE_TEST_SUITE_P(Frameworks, GoldenLaunch, ::testing::ValuesIn(list_launches()), [](const auto& each) {
  return each.param.framework + "_" + each.param.model + "_" + each.param.platform;
});

// ---- flags that the real programs accept

TEST(MegatronFlags, AreThoseOfTheRealPrograms) {
  for (const auto& [framework, table] :
       {std::pair{Framework::mega, "megatron_lm_flags.tsv"}, {Framework::mgds, "megatron_deepspeed_flags.tsv"}}) {
    const auto flags = read_flags(table);
    ASSERT_GT(flags.size(), 100u);
    const suite::FrameworkModule& module = suite::require_framework(framework, Platform::nvd);
    int plans = 0;
    for (const Platform platform : {Platform::nvd, Platform::amd})
      for (const auto& [strategy, by_model] : eight_gpus().strategies)
        for (const char* model : {"llama", "qwen", "mistral"}) try {
            suite::LaunchRequest request = request_for(module, model, platform, strategy);
            expect_accepted(suite::plan_launch(module, request).command, flags);
            for (const Profiler profiler : module.profilers) {
              request.profile = suite::ProfileWindow{profiler, 11, 15, "/out/p", !suite::marks_steps(module, profiler)};
              expect_accepted(suite::plan_launch(module, request).command, flags);
            }
            request.spec.checkpoint.load = "/checkpoints";
            request.spec.checkpoint.load_step = 10;
            expect_accepted(suite::plan_launch(module, request).command, flags);
            ++plans;
          } catch (const Error&) {  // refused: the golden files say why
          }
    EXPECT_GT(plans, 10);
  }
}

}  // namespace
}  // namespace tprimat

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "launch/frameworks.h"
#include "real_flags.h"
#include "render_plan.h"

// What the frameworks are started with for mixtures of experts: launch/<framework>_<model>_<platform>.txt, one part per
// strategy, and one with forced balance over DeepEP. Regenerate: TPRIMAT_UPDATE_GOLDEN=1 golden_tests
namespace tprimat {
namespace {

namespace fs = std::filesystem;

const fs::path k_folder = fs::path(TPRIMAT_GOLDEN_DIR) / "launch";

const suite::Experiment& sixty_four_gpus() {
  static const suite::Experiment experiment = load_launch_experiment("sixty_four_gpus.yaml");
  return experiment;
}

suite::LaunchRequest request_for(const suite::FrameworkModule& module, const std::string& model, Platform platform,
                                 const std::string& strategy) {
  suite::LaunchRequest request = make_request(sixty_four_gpus(), module, {model, platform, strategy});
  request.launch.launcher = Launcher::slurm;
  request.launch.slurm.start = SlurmStart::srun;
  request.launch.nodes = 8;
  return request;
}

suite::LaunchRequest with_forced_balance(suite::LaunchRequest request) {
  request.spec.routing = Routing::balanced;
  request.spec.dispatcher = Dispatcher::deepep;
  return request;
}

// What torchtitan has of them: no auxiliary losses, and no layers that predict further tokens.
suite::LaunchRequest with_bias_alone(suite::LaunchRequest request) {
  request.spec.parallel.zero_stage = 3;
  request.spec.model.prediction_layers.reset();
  request.spec.model.experts->aux_loss_coefficient = 0;
  request.spec.model.experts->balancing = LoadBalancing::bias;
  return request;
}

// What Transformers has of them: every expert on every rank.
suite::LaunchRequest with_experts_everywhere(suite::LaunchRequest request) {
  request.spec.parallel = {.strategy = request.spec.parallel.strategy, .data = 64, .zero_stage = 3};
  request.spec.model.prediction_layers.reset();
  return request;
}

struct Case {
  Framework framework = Framework::mega;
  std::string model;
  Platform platform = Platform::nvd;
};

std::string name_of(const Case& each) {
  return std::string(enum_name(each.framework)) + "_" + each.model + "_" + std::string(enum_name(each.platform));
}

void PrintTo(const Case& each, std::ostream* out) { *out << name_of(each); }

std::vector<Case> list_launches() {
  constexpr std::pair<Framework, Platform> k_frameworks[] = {
      {Framework::mega, Platform::nvd}, {Framework::mega, Platform::amd}, {Framework::mgds, Platform::nvd},
      {Framework::nemo, Platform::nvd}, {Framework::nemo, Platform::amd}, {Framework::prim, Platform::amd},
      {Framework::tita, Platform::nvd}, {Framework::tita, Platform::amd}, {Framework::tran, Platform::nvd},
      {Framework::fsdp, Platform::nvd}, {Framework::deep, Platform::amd}};
  std::vector<Case> cases;
  for (const auto& [framework, platform] : k_frameworks)
    for (const char* model : {"deepseek", "qwen", "mixtral"})
      cases.push_back({framework, std::string(model) + "_64", platform});
  return cases;
}

std::string model_of(const Case& each) { return each.model.substr(0, each.model.rfind('_')); }

class GoldenSparseLaunch : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { ::setenv("TPRIMAT_FRAMEWORKS", "/opt/frameworks", 1); }
  void TearDown() override { ::unsetenv("TPRIMAT_FRAMEWORKS"); }
};

// One part per strategy, then the last one as benchmarks train it.
std::string plan_all(const Case& each, suite::LaunchRequest (*adjust)(suite::LaunchRequest), const std::string& note) {
  const suite::FrameworkModule& module = suite::require_framework(each.framework, each.platform);
  const auto request = [&](const std::string& strategy) {
    return adjust(request_for(module, model_of(each), each.platform, strategy));
  };
  std::string text;
  for (const auto& [strategy, layouts] : sixty_four_gpus().strategies)
    text += "==== " + strategy + note + "\n" + plan_or_refusal(module, request(strategy)) + "\n";
  return text + "==== split, balanced by force over DeepEP" + note + "\n" +
         plan_or_refusal(module, with_forced_balance(request("split")));
}

// Both strategies are refused, and both would be the same without their EP.
std::string plan_for_transformers(const Case& each) {
  const suite::FrameworkModule& module = suite::require_framework(each.framework, each.platform);
  const suite::LaunchRequest asked = request_for(module, model_of(each), each.platform, "data_parallel");
  suite::LaunchRequest taken = with_experts_everywhere(asked);
  if (each.framework == Framework::tran) taken.spec.parallel.zero_stage = 0;  // it shards nothing
  return "==== data_parallel\n" + plan_or_refusal(module, asked) +
         "\n==== data_parallel, balanced by force, every expert on every rank\n" +
         plan_or_refusal(module, with_forced_balance(taken));
}

std::string plan_of(const Case& each) {
  if (each.framework == Framework::tran || each.framework == Framework::fsdp || each.framework == Framework::deep)
    return plan_for_transformers(each);
  const auto as_stated = [](suite::LaunchRequest request) { return request; };
  std::string text = plan_all(each, as_stated, "");
  if (each.framework == Framework::tita) text += "\n" + plan_all(each, with_bias_alone, ", a bias alone");
  return text;
}

TEST_P(GoldenSparseLaunch, IsAsWritten) {
  const std::string text = plan_of(GetParam());
  const fs::path file = k_folder / (name_of(GetParam()) + ".txt");
  if (std::getenv("TPRIMAT_UPDATE_GOLDEN") != nullptr) write_file_atomically(file, text);
  EXPECT_EQ(text, read_file(file));
}

INSTANTIATE_TEST_SUITE_P(Frameworks, GoldenSparseLaunch, ::testing::ValuesIn(list_launches()),
                         [](const auto& each) { return name_of(each.param); });

TEST(SparseMegatronFlags, AreThoseOfTheRealPrograms) {
  for (const auto& [framework, table] :
       {std::pair{Framework::mega, "megatron_lm_flags.tsv"}, {Framework::mgds, "megatron_deepspeed_flags.tsv"}}) {
    const auto flags = read_flags(table);
    const suite::FrameworkModule& module = suite::require_framework(framework, Platform::nvd);
    int plans = 0;
    for (const auto& [strategy, layouts] : sixty_four_gpus().strategies)
      for (const char* model : {"deepseek", "qwen", "mixtral"}) {
        const suite::LaunchRequest request = request_for(module, model, Platform::nvd, strategy);
        for (const suite::LaunchRequest& each : {request, with_forced_balance(request)}) try {
            expect_accepted(suite::plan_launch(module, each).command, flags);
            ++plans;
          } catch (const Error&) {  // refused: the golden files say why
          }
      }
    EXPECT_EQ(plans, framework == Framework::mega ? 12 : 1);
  }
}

}  // namespace
}  // namespace tprimat

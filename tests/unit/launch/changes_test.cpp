#include <gtest/gtest.h>

#include "base/error.h"
#include "launch/frameworks.h"
#include "unit/launch/changes.h"

// The classic failure of comparisons: one side never hears of a setting. So one setting is changed at a time, and every
// framework must be started otherwise, or refuse, or say that it deviates.
namespace tprimat::suite {
namespace {

// All that decides what runs, in one text; nothing where the framework refuses.
std::optional<std::string> what_runs(const FrameworkModule& module, const LaunchRequest& request) {
  try {
    const LaunchPlan plan = plan_launch(module, request);
    std::string text = plan.working_directory;
    for (const std::string& word : plan.command) text += "\n" + word;
    for (const auto& [name, value] : plan.environment) text += "\n" + name + "=" + value;
    for (const GeneratedFile& file : plan.files) text += "\n" + file.path + "\n" + file.content;
    for (const Deviation& each : plan.deviations) text += "\n" + each.key + each.asked + each.effective;
    return text;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void expect_visible(const std::vector<Change>& changes, const std::function<void(LaunchRequest&)>& prepare) {
  for (const FrameworkModule& module : framework_modules())
    for (const Platform platform : module.platforms) {
      LaunchRequest base = base_request(platform);
      prepare(base);
      const auto before = what_runs(module, base);
      for (const Change& change : changes) {
        LaunchRequest changed = base;
        change.apply(changed);
        const auto after = what_runs(module, changed);
        if (!before || !after) continue;
        EXPECT_TRUE(*before != *after) << change.key << " is lost on " << enum_name(module.id) << " on "
                                       << enum_name(platform);
      }
    }
}

void nothing_more(LaunchRequest&) {}

TEST(Changes, BaseRunsEverywhere) {
  for (const FrameworkModule& module : framework_modules())
    for (const Platform platform : module.platforms)
      EXPECT_TRUE(what_runs(module, base_request(platform))) << enum_name(module.id);
}

TEST(Changes, OfTheTrainingReachEveryFramework) {
  expect_visible(optimizer_changes(), nothing_more);
  expect_visible(training_changes(), nothing_more);
}
TEST(Changes, OfTheLayoutReachEveryFramework) { expect_visible(layout_changes(), nothing_more); }
TEST(Changes, OfTheModelReachEveryFramework) { expect_visible(model_changes(), nothing_more); }

TEST(Changes, OfExpertsReachEveryFramework) {
  expect_visible(expert_changes(), [](LaunchRequest& request) { request.spec.model.experts = base_experts(); });
  const Change dispatcher = on_spec("dispatcher", [](TrainSpec& s) { s.dispatcher = Dispatcher::allgather; });
  const Change fused = on_spec("fused dispatcher", [](TrainSpec& s) { s.dispatcher = Dispatcher::deepep; });
  expect_visible({dispatcher, fused}, [](LaunchRequest& request) {
    request.spec.model.experts = base_experts();
    request.spec.parallel.expert = 2;
  });
}

TEST(Changes, ThatNeedOthersReachEveryFramework) {
  expect_visible(dependent_changes(), [](LaunchRequest& request) {
    request.spec.parallel.tensor = 2;
    request.spec.parallel.pipeline = 2;
    request.spec.precision = Precision::fp16;
    request.spec.model.rope_scaling = RopeScaling{};
  });
}

TEST(Changes, OfWhatIsRecomputedReachesEveryFramework) {
  const Change modules = on_spec("recompute_modules", [](TrainSpec& s) {
    s.recompute_modules = {RecomputedModule::norms, RecomputedModule::expert_activation};
  });
  expect_visible({modules}, [](LaunchRequest& request) {
    request.spec.model.experts = base_experts();
    request.spec.recompute = Recompute::selective;
  });
}

TEST(Changes, OfThePlatformReachEveryFramework) {
  std::vector<Change> changes = platform_changes();
  for (const FrameworkModule& module : framework_modules())
    for (const Platform platform : {Platform::nvd, Platform::amd}) {
      if (!runs_on(module, platform)) continue;
      LaunchRequest base = base_request(platform);
      base.spec.precision = Precision::fp8;
      base.spec.parallel.zero_stage = 1;
      if (!what_runs(module, base)) base.spec.precision = Precision::bf16;
      if (!what_runs(module, base)) base.spec.parallel.zero_stage = 0;
      const auto before = what_runs(module, base);
      ASSERT_TRUE(before) << enum_name(module.id);
      for (const Change& change : changes) {
        if (std::string(change.key).starts_with("fp8") && base.spec.precision != Precision::fp8) continue;
        LaunchRequest changed = base;
        change.apply(changed);
        const auto after = what_runs(module, changed);
        EXPECT_TRUE(*before != after.value_or("refused")) << change.key << " is lost on " << enum_name(module.id);
      }
    }
}

TEST(Changes, OfAmdsOwnSettingsAreSeenOnAmd) {
  for (const FrameworkModule& module : framework_modules()) {
    if (!runs_on(module, Platform::amd)) continue;
    LaunchRequest request = base_request(Platform::amd);
    request.settings.hsa_enable_sdma = false;
    request.settings.hsa_no_scratch_reclaim = true;
    try {
      const LaunchPlan plan = plan_launch(module, request);
      EXPECT_EQ(plan.environment.at("HSA_ENABLE_SDMA"), "0");
      EXPECT_EQ(plan.environment.at("HSA_NO_SCRATCH_RECLAIM"), "1");
    } catch (const Error&) {
      EXPECT_EQ(module.id, Framework::prim);  // whose script sets the first one itself
    }
  }
}

TEST(Changes, ACpuRunSeesNoGpu) {
  const FrameworkModule& module = require_framework(Framework::fsdp, Platform::cpu);
  EXPECT_EQ(plan_launch(module, base_request(Platform::cpu)).environment.at("CUDA_VISIBLE_DEVICES"), "");
}

}  // namespace
}  // namespace tprimat::suite

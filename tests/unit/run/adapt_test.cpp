// With --adapt nearest every framework trains whatever is asked for, and what it does otherwise is said.
#include "run/adapt.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "launch/frameworks.h"
#include "unit/launch/changes.h"

namespace tprimat::suite {
namespace {

PlannedRun asked_of(const FrameworkModule& module, const LaunchRequest& request) {
  PlannedRun run;
  run.platform = request.platform;
  run.framework = module.id;
  run.spec = request.spec;
  run.request = request;
  run.setup.device_model = request.platform == Platform::nvd ? "H100" : "MI300X";
  run.setup.num_devices = request.spec.parallel.ranks();
  return run;
}

std::optional<Adaptation> adapt(const FrameworkModule& module, const LaunchRequest& request) {
  return find_nearest_request(asked_of(module, request), MachineFacts{}, planner::PlannerSettings{});
}

const Deviation* find_change(const Adaptation& adapted, std::string_view key) {
  const auto found = std::ranges::find_if(adapted.differences, [&](const Deviation& d) { return d.key == key; });
  return found == adapted.differences.end() ? nullptr : &*found;
}

// FP8 with tensor parallelism and a sharded optimizer: what NeMo and Megatron-LM train and the others do not.
LaunchRequest demanding_request(Platform platform) {
  LaunchRequest request = base_request(platform);
  request.spec.precision = Precision::fp8;
  request.spec.parallel = {.strategy = "demanding", .tensor = 4, .data = 2, .sequence_parallel = true, .zero_stage = 1};
  request.settings.fp8_param = true;
  return request;
}

std::string what_runs(const FrameworkModule& module, const Adaptation& adapted) {
  const LaunchPlan plan = plan_launch(module, adapted.request);
  std::string text = plan.working_directory;
  for (const std::string& word : plan.command) text += "\n" + word;
  for (const auto& [name, value] : plan.environment) text += "\n" + name + "=" + value;
  for (const GeneratedFile& file : plan.files) text += "\n" + file.path + "\n" + file.content;
  for (const auto& list : {plan.deviations, adapted.differences})
    for (const Deviation& each : list) text += "\n" + each.key + each.asked + each.effective;
  return text;
}

// Another model, other data or another machine would be another training, so it is refused and not adapted.
bool is_refused_for_good(const std::string& key) {
  for (const char* each :
       {"experts", "synthetic", "initial_weights", "load", "qk_norm", "sliding_window", "split", "seed", "rope_scaling",
        "rope factor", "linear_bias", "gpt", "visible_devices", "cuda_device_max_connections"})
    if (key == each) return true;
  return false;
}

TEST(Adapt, EveryFrameworkTrainsADemandingRequest) {
  for (const FrameworkModule& module : framework_modules())
    for (const Platform platform : {Platform::nvd, Platform::amd})
      if (runs_on(module, platform)) {
        const auto adapted = adapt(module, demanding_request(platform));
        ASSERT_TRUE(adapted) << enum_name(module.id);
        EXPECT_NO_THROW(plan_launch(module, adapted->request)) << enum_name(module.id);
      }
}

TEST(Adapt, TakesNothingElseThanAskedWhereTheFrameworkSupportsIt) {
  const auto adapted = adapt(require_framework(Framework::mega, Platform::nvd), demanding_request(Platform::nvd));
  ASSERT_TRUE(adapted);
  EXPECT_TRUE(adapted->differences.empty());
}

TEST(Adapt, SaysWhatTransformersTakesInsteadAndWhy) {
  const auto adapted = adapt(require_framework(Framework::tran, Platform::nvd), demanding_request(Platform::nvd));
  ASSERT_TRUE(adapted);
  const Deviation* precision = find_change(*adapted, "precision");
  ASSERT_NE(precision, nullptr);
  EXPECT_EQ(precision->asked, "fp8");
  EXPECT_EQ(precision->effective, "bf16");
  EXPECT_EQ(precision->reason, "the framework 'tran' does not train in fp8");
  const Deviation* tensor = find_change(*adapted, "tensor_model_parallel_size");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->effective, "1");
  EXPECT_NE(tensor->reason.find("trains data-parallel only"), std::string::npos) << tensor->reason;
  EXPECT_EQ(adapted->request.spec.parallel.data, 8);
}

TEST(Adapt, EachSettingOfALayoutHasItsOwnReason) {
  LaunchRequest request = base_request(Platform::nvd);
  request.spec.model.experts = base_experts();
  request.spec.parallel = {.strategy = "experts", .pipeline = 2, .data = 4, .expert = 4, .zero_stage = 1};
  const auto adapted = adapt(require_framework(Framework::fsdp, Platform::nvd), request);
  ASSERT_TRUE(adapted);
  const std::pair<const char*, const char*> reasons[] = {{"pipeline_model_parallel_size", "trains data-parallel only"},
                                                         {"expert_model_parallel_size", "has every expert on"},
                                                         {"zero_stage", "does not support ZeRO-1"}};
  for (const auto& [key, reason] : reasons) {
    const Deviation* change = find_change(*adapted, key);
    ASSERT_NE(change, nullptr) << key;
    EXPECT_NE(change->reason.find(reason), std::string::npos) << change->reason;
    EXPECT_EQ(change->reason.find(';'), std::string::npos) << change->reason;
  }
  EXPECT_EQ(find_change(*adapted, "zero_stage")->effective, "3") << "its own stage, in one change";
  EXPECT_EQ(adapted->request.spec.parallel.zero_stage, 3);
}

TEST(Adapt, EveryDifferenceHasAReason) {
  for (const FrameworkModule& module : framework_modules())
    for (const Platform platform : module.platforms) {
      const auto adapted = adapt(module, demanding_request(platform));
      ASSERT_TRUE(adapted);
      for (const Deviation& each : adapted->differences) EXPECT_FALSE(each.reason.empty()) << each.key;
    }
}

TEST(Adapt, TakesAMoreCompactTrainingWhereMemoryIsShort) {
  LaunchRequest request = base_request(Platform::nvd);
  ModelSpec& model = request.spec.model;
  model.num_layers = 32, model.hidden_size = 4096, model.ffn_hidden_size = 14336, model.num_attention_heads = 32;
  model.num_key_value_heads = 8, model.head_dim = 128, model.vocab_size = 128256;
  request.spec.parallel = {};
  const FrameworkModule& tran = require_framework(Framework::tran, Platform::nvd);
  const auto adapted = adapt(tran, request);  // Llama 3.1 8B on one H100
  ASSERT_TRUE(adapted);
  EXPECT_FALSE(adapted->request.spec.optimizer.master_weights);
  EXPECT_EQ(adapted->request.spec.optimizer.moments, MomentFormat::bf16);
  const Deviation* masters = find_change(*adapted, "master_weights");
  ASSERT_NE(masters, nullptr);
  EXPECT_NE(masters->reason.find("would need"), std::string::npos) << masters->reason;
}

TEST(Adapt, ChangesOfOneSettingAreFoundInEveryPlan) {
  std::vector<Change> changes = optimizer_changes();
  for (const auto& list : {training_changes(), layout_changes(), model_changes(), platform_changes()})
    changes.insert(changes.end(), list.begin(), list.end());
  for (const FrameworkModule& module : framework_modules())
    for (const Platform platform : {Platform::nvd, Platform::amd}) {
      if (!runs_on(module, platform)) continue;
      const auto base = adapt(module, demanding_request(platform));
      ASSERT_TRUE(base);
      const std::string before = what_runs(module, *base);
      for (const Change& change : changes) {
        LaunchRequest changed = demanding_request(platform);
        change.apply(changed);
        const auto after = adapt(module, changed);
        if (!after && is_refused_for_good(change.key)) continue;
        if (std::string_view(change.key).starts_with("fp8_") && base->request.spec.precision != Precision::fp8)
          continue;
        ASSERT_TRUE(after) << change.key << " on " << enum_name(module.id);
        if (changed.spec == demanding_request(platform).spec &&
            changed.settings == demanding_request(platform).settings)
          continue;  // it is so already
        EXPECT_TRUE(what_runs(module, *after) != before) << change.key << " is lost on " << enum_name(module.id);
      }
    }
}

}  // namespace
}  // namespace tprimat::suite

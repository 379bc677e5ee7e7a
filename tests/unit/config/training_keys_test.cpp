#include <gtest/gtest.h>

#include "config/experiment.h"
#include "config_case.h"

namespace tprimat::suite {
namespace {

TrainSpec spec_of(const ConfigCase& config, Platform platform = Platform::cpu, const std::string& model = "llama",
                  const std::string& strategy = "single") {
  return make_train_spec(config.load().experiment, platform, model, strategy);
}

ConfigCase with(std::vector<std::string> overrides) { return {"experiment: {name: x}\n", {}, std::move(overrides)}; }

// The one error of a configuration, or how many there are.
std::string only_error(const ConfigCase& config) {
  const std::vector<Problem> errors = config.errors();
  return errors.size() == 1 ? to_string(errors[0]) : std::to_string(errors.size()) + " errors\n" + print(errors);
}

TEST(TrainingKeys, ReachTheTrainSpec) {
  const TrainSpec spec = spec_of({R"(training:
  general: {deterministic: false}
  data: {split: "949,50,1"}
  precision: {loss_scale: {initial: 65536, window: 200, minimum: 0.5}}
  evaluation: {interval: 20, batches: 3}
  anomalies: {not_finite: skip, spike: stop, spike_factor: 3}
platform_optimizations: {cpu: {recompute: selective}}
)"});
  EXPECT_EQ(spec.deterministic, false);
  EXPECT_EQ(spec.data.split, "949,50,1");
  EXPECT_EQ(spec.loss_scale, (LossScaleSpec{65536, 200, 0.5}));
  EXPECT_EQ(spec.evaluation, (EvaluationSpec{20, 3}));
  EXPECT_EQ(spec.anomalies, (AnomalySpec{OnAnomaly::skip, OnAnomaly::stop, 3}));
  EXPECT_EQ(spec.recompute, Recompute::selective);
}

TEST(TrainingKeys, ThatNobodyStatesAreTheSpecsOwnDefaults) {
  const TrainSpec spec = spec_of({"experiment: {name: x}\n"}), defaults;
  EXPECT_EQ(spec.deterministic, true);  // on a processor
  EXPECT_EQ(spec.data, defaults.data);
  EXPECT_EQ(spec.loss_scale, (LossScaleSpec{4096, 1000, 1}));
  EXPECT_EQ(spec.evaluation, defaults.evaluation);
  EXPECT_EQ(spec.anomalies, defaults.anomalies);
  EXPECT_EQ(spec.recompute, Recompute::none);
  EXPECT_EQ(spec.checkpoint, defaults.checkpoint);
  EXPECT_EQ(spec.parallel.zero_stage, 0);
  EXPECT_EQ(spec.model.rope_scaling, std::nullopt);
}

TEST(TrainingKeys, SlipsAreNamedWithTheirPlace) {
  EXPECT_EQ(only_error({"training:\n  anomalies: {not_finite: record}\n"}),
            "config.yaml:2:27: training.anomalies.not_finite must be one of stop, skip, got 'record'");
  EXPECT_EQ(only_error({"training:\n  anomalies: {spike_factor: 0.5}\n"}),
            "config.yaml:2:29: training.anomalies.spike_factor must be 0 or above 1, got 0.5\n  a loss above this "
            "multiple of its running mean is a spike");
  EXPECT_EQ(only_error({"training:\n  evaluation: {intervall: 5}\n"}),
            "config.yaml:2:16: unknown key 'intervall' in training.evaluation\n  did you mean 'interval'?");
  EXPECT_EQ(only_error({"training:\n  precision: {loss_scale: {initial: 2, minimum: 4}}\n"}),
            "config.yaml:2:49: training.precision.loss_scale.minimum 4 is above initial 2\n  lower minimum: the scale "
            "starts at initial and never falls below minimum");
  EXPECT_NE(only_error({"platform_optimizations:\n  cpu: {recompute: ful}\n"}).find("did you mean 'full'?"),
            std::string::npos);
  EXPECT_NE(only_error(with({"training.precision.loss_scale.window=0"})).find("must be between 1 and"),
            std::string::npos);
}

TEST(Anomalies, ASpikeThatCannotBeFoundIsAWarning) {
  EXPECT_TRUE(
      mention(with({"training.anomalies.spike=stop"}).load().warnings, "spike_factor 0 disables spike detection"));
  EXPECT_TRUE(with({"training.anomalies.spike=stop", "training.anomalies.spike_factor=2"}).load().warnings.empty());
}

TEST(Warmup, AFractionBecomesSteps) {
  const auto steps_of = [](const std::string& fraction, int64_t max_steps) {
    return spec_of({"training: {duration: {max_steps: " + std::to_string(max_steps) +
                    "}, optimizer: {warmup_fraction: " + fraction + "}}\n"})
        .optimizer.warmup_steps;
  };
  EXPECT_EQ(steps_of("0.1", 60), 6);
  EXPECT_EQ(steps_of("0.29", 100), 29);  // 0.29 x 100 is below 29 in floating point
  EXPECT_EQ(steps_of("0", 60), 0);
  EXPECT_EQ(steps_of("1", 60), 59);
  EXPECT_EQ(steps_of("0.5", 1), 0);
}

TEST(Warmup, AFractionFollowsTheStepsOfAnOverride) {
  ConfigCase config{"training: {optimizer: {warmup_fraction: 0.2}}\n", {{"TRAIN_ITERS", "5"}}};
  EXPECT_EQ(spec_of(config).optimizer.warmup_steps, 1);
  EXPECT_TRUE(config.load().warnings.empty());
}

TEST(Warmup, IsStatedOnceOnly) {
  ConfigCase config{"training:\n  optimizer:\n    warmup_steps: 5\n    warmup_fraction: 0.1\n"};
  EXPECT_EQ(only_error(config),
            "config.yaml:4:22: training.optimizer.warmup_fraction and warmup_steps are both set\n  keep one of them; "
            "warmup_steps is set at config.yaml:3:19");
  config.text = "training: {optimizer: {warmup_fraction: 0.1}}\n";
  config.overrides = {"training.optimizer.warmup_steps=7"};
  EXPECT_EQ(spec_of(config).optimizer.warmup_steps, 7);
  config.text = "training: {optimizer: {warmup_steps: 7}}\n";
  config.overrides = {"training.optimizer.warmup_fraction=0.5"};
  EXPECT_EQ(spec_of(config).optimizer.warmup_steps, 30);
  config.text = "training: {duration: {max_steps: 5}, optimizer: {warmup_fraction: 2}}\n";
  config.overrides = {};
  EXPECT_NE(only_error(config).find("must be between 0 and 1, got 2"), std::string::npos);
}

TEST(Split, IsUpToThreeWeights) {
  for (const char* good : {"949,50,1", "100", "9, 1", "0.5,0.5"})
    EXPECT_EQ(spec_of(with({std::string("training.data.split=") + good})).data.split, good);
  for (const char* bad : {"1,2,3,4", "1,,2", "1,", "-1,2", "a", "0,0,0", "1;2", "nan", "inf"})
    EXPECT_NE(only_error(with({std::string("training.data.split=") + bad})).find("up to three comma-separated weights"),
              std::string::npos)
        << bad;
  EXPECT_NE(only_error(with({"training.data.split=0,1"})).find("leaves no training data"), std::string::npos);
}

TEST(Evaluation, NeedsValidationData) {
  ConfigCase config = with({"training.evaluation.interval=5"});
  EXPECT_TRUE(config.errors().empty());  // synthetic tokens have every split
  config.overrides.push_back("models.llama.dataset_path=/d/x");
  EXPECT_NE(only_error(config).find("leaves no validation data in models.llama.dataset_path"), std::string::npos);
  config.overrides.push_back("training.data.split=9,1");
  EXPECT_TRUE(config.errors().empty());
}

TEST(Recomputation, HasThreeNamesAndOneMeaning) {
  const auto setup_of = [](const std::string& keys) {
    const LoadedExperiment loaded = ConfigCase{"platform_optimizations: {cpu: {" + keys + "}}\n"}.load();
    const PlatformSetup& setup = loaded.experiment.platforms.at(Platform::cpu);
    EXPECT_EQ(setup.activation_checkpointing, setup.recompute != Recompute::none);
    return std::string(enum_name(setup.recompute)) + (loaded.warnings.empty() ? "" : " with a warning");
  };
  EXPECT_EQ(setup_of("recompute: none"), "none");
  EXPECT_EQ(setup_of("activation_checkpointing: true"), "full");
  EXPECT_EQ(setup_of("gradient_checkpointing: true"), "full");
  EXPECT_EQ(setup_of("gradient_checkpointing: true, activation_checkpointing: false"), "none with a warning");
  EXPECT_EQ(setup_of("recompute: selective, activation_checkpointing: true"), "selective");
  EXPECT_EQ(setup_of("recompute: selective, gradient_checkpointing: false"), "selective with a warning");
  EXPECT_EQ(setup_of("recompute: none, activation_checkpointing: true"), "none with a warning");
}

TEST(Recomputation, OfAnotherDegreeIsNotTheSameWork) {
  ConfigCase config{eight_devices()};
  config.overrides = {"platform_optimizations.nvd.recompute=selective", "platform_optimizations.amd.recompute=full"};
  EXPECT_TRUE(mention(config.load().warnings, "recompute selective against full"));
  EXPECT_FALSE(mention(config.load().warnings, "activation_checkpointing true against"));
}

constexpr const char* k_scaled =
    "rope_scaling: {type: llama3, factor: 8, original_max_position_embeddings: 8192, low_freq_factor: 2}";

ConfigCase with_rope(const std::string& scaling) {
  return {"models:\n  llama:\n    name: llama3.1_8b\n    " + scaling + "\n"};
}

TEST(RopeScaling, IsTakenAndFilledUp) {
  const LoadedExperiment loaded = with_rope(k_scaled).load();
  EXPECT_TRUE(loaded.warnings.empty()) << print(loaded.warnings);
  RopeScaling expected;
  expected.low_freq_factor = 2;
  EXPECT_EQ(loaded.experiment.models.at(0).spec.rope_scaling, expected);
  const std::string printed = print_yaml(loaded.settings, false);
  EXPECT_NE(printed.find("high_freq_factor: 4"), std::string::npos) << printed;
  EXPECT_EQ(printed.find("beta_fast"), std::string::npos) << printed;
}

TEST(RopeScaling, TakesTheHuggingFaceSpellingOfItsType) {
  const auto scaling = with_rope("rope_scaling: {rope_type: linear, factor: 2}").load().experiment.models.at(0);
  EXPECT_EQ(scaling.spec.rope_scaling->type, RopeScalingKind::linear);
  EXPECT_EQ(scaling.spec.rope_scaling->factor, 2);
}

TEST(RopeScaling, SlipsGiveOneMessage) {
  EXPECT_EQ(only_error(with_rope("rope_scaling: {factor: 8}")),
            "config.yaml:4:19: models.llama.rope_scaling lacks type\n"
            "  for example  rope_scaling: {type: llama3, factor: 8, original_max_position_embeddings: 8192}");
  EXPECT_NE(only_error(with_rope("rope_scaling: {type: yarn}")).find("lacks factor, original_max_position_embeddings"),
            std::string::npos);
  EXPECT_NE(only_error(with_rope("rope_scaling: {type: yarm, factor: 8}")).find("did you mean 'yarn'?"),
            std::string::npos);
  EXPECT_NE(only_error(with_rope("rope_scaling: {type: linear, factor: 0.5}")).find("must be between 1 and"),
            std::string::npos);
  EXPECT_NE(only_error(with_rope("rope_scaling: {type: llama3, factor: 8, original_max_position_embeddings: 8192, "
                                 "high_freq_factor: 1}"))
                .find("models.llama: rope_scaling.low_freq_factor must be above 0 and below high_freq_factor 1"),
            std::string::npos);
  EXPECT_NE(only_error(with_rope("position: learned\n    rope_scaling: {type: linear, factor: 2}"))
                .find("rope_scaling needs position rope"),
            std::string::npos);
}

TEST(RopeScaling, WhatTheTypeDoesNotUseIsAWarning) {
  EXPECT_TRUE(mention(with_rope("rope_scaling: {type: linear, factor: 2, beta_fast: 9}").load().warnings,
                      "rope_scaling.beta_fast has no effect with type linear"));
}

TEST(InitialWeights, AreAFolder) {
  EXPECT_EQ(spec_of(with({"models.llama.initial_weights=/w/llama"})).checkpoint.initial_weights, "/w/llama");
  EXPECT_EQ(spec_of(with({"models.llama.initial_weights=/w/llama"}), Platform::cpu, "qwen").checkpoint.initial_weights,
            "");
}

TEST(Checkpointing, IsRelativeToTheRunsFolderAndBeginsAnew) {
  const TrainSpec spec = spec_of({"training: {checkpointing: {enabled: true, save_interval: 30, keep_last_n: 4}}\n"});
  EXPECT_EQ(spec.checkpoint, (CheckpointSpec{"checkpoints", 30, 4, false, ""}));
}

TEST(ZeroStage, ReachesTheLayout) {
  ConfigCase config{eight_devices()};
  config.overrides = {"parallelism.mine.llama.nvd.ZeRO=1"};
  EXPECT_EQ(spec_of(config, Platform::nvd, "llama", "mine").parallel.zero_stage, 1);
  EXPECT_EQ(spec_of(config, Platform::amd, "llama", "mine").parallel.zero_stage, 0);
  config.overrides = {"parallelism.mine.llama.nvd.zero_stage=4"};
  EXPECT_NE(only_error(config).find("zero_stage must be between 0 and 3, got 4"), std::string::npos);
  config.overrides = {"parallelism.mine.llama.nvd.ZeRO=1", "experiment.methodology=identical_config"};
  config.text.replace(config.text.find("mine:"), 5, "identical_config:");
  config.overrides[0] = "parallelism.identical_config.llama.nvd.ZeRO=1";
  EXPECT_NE(only_error(config).find("layout of llama differs: TP 4 PP 1 VP 1 DP 2 CP 1 ZeRO 1 on nvd"),
            std::string::npos);
  config.overrides[0] = "parallelism.identical_config.llama.nvd.SP=true";
  EXPECT_NE(only_error(config).find("TP 4 PP 1 VP 1 DP 2 CP 1 SP on nvd, TP 4 PP 1 VP 1 DP 2 CP 1 on amd"),
            std::string::npos);
}

TEST(ZeroStage, DecidesWhetherTheStateFits) {
  ConfigCase config{eight_devices()};
  config.overrides = {"parallelism.mine.llama.nvd={TP: 1, DP: 8}"};
  EXPECT_TRUE(mention(config.load().warnings, "zero_stage: 3"));
  config.overrides = {"parallelism.mine.llama.nvd={TP: 1, DP: 8, ZeRO: 1}"};
  EXPECT_FALSE(mention(config.load().warnings, "before activations"));
}

TEST(Settings, OfEveryTrainingKeyLoadAgain) {
  ConfigCase config = with_rope(k_scaled);
  config.text += R"(training:
  optimizer: {warmup_fraction: 0.25}
  data: {split: "9,1"}
  anomalies: {not_finite: skip, spike_factor: 2}
platform_optimizations: {cpu: {recompute: none}}
)";
  const LoadedExperiment first = config.load();
  const LoadedExperiment printed = ConfigCase{print_yaml(first.settings, true)}.load();
  EXPECT_EQ(print_yaml(printed.settings, false), print_yaml(first.settings, false));
  EXPECT_EQ(printed.experiment.optimizer, first.experiment.optimizer);
  for (const ExportedVariable& variable : list_exports(first.settings))
    config.environment[variable.name] = variable.value;
  EXPECT_EQ(print_yaml(config.load().settings, false), print_yaml(first.settings, false));
}

const char* const k_sparse = R"(models:
  mixtral: {name: "mistral_7b", num_experts: 8, experts_per_token: 2}
)";

TEST(ExpertKeys, ReachTheTrainSpecOfASparseModel) {
  const ConfigCase config{std::string(k_sparse) + "training: {routing: balanced, dispatcher: deepep}\n"};
  const TrainSpec spec = spec_of(config, Platform::cpu, "mixtral");
  EXPECT_EQ(spec.routing, Routing::balanced);
  EXPECT_EQ(spec.dispatcher, Dispatcher::deepep);
  EXPECT_EQ(spec_of({k_sparse}, Platform::cpu, "mixtral").routing, std::nullopt);
  const ConfigCase both{"models:\n  dense: {name: mistral_7b}\n" + std::string(k_sparse + 8) +
                        "training: {routing: balanced}\n"};
  EXPECT_EQ(spec_of(both, Platform::cpu, "dense").routing, std::nullopt);
  EXPECT_EQ(spec_of(both, Platform::cpu, "mixtral").routing, Routing::balanced);
}

TEST(ExpertKeys, NeedAModelWithExperts) {
  EXPECT_EQ(only_error({"training: {routing: balanced}\n"}),
            "config.yaml:1:21: training.routing is balanced, but no model has experts\n  leave it out, or choose a "
            "mixture of experts");
  EXPECT_EQ(only_error({"training: {dispatcher: alltoall}\n"}),
            "config.yaml:1:24: training.dispatcher is alltoall, but no model has experts\n  leave it out, or choose a "
            "mixture of experts");
}

TEST(ExpertKeys, LayoutsTakeExpertSizes) {
  const std::string config = R"(experiment: {methodology: mine}
hardware: {platforms: {nvidia: {gpu_model: H100, num_gpus: 8}}}
models: {mixtral: {name: mistral_7b, num_experts: 8, experts_per_token: 2}}
training: {data: {global_batch_size: 64, seq_length: 2048}}
parallelism: {mine: {mixtral: {nvidia: {TP: 2, EP: 4, ETP: 2}}}}
)";
  const TrainSpec spec = spec_of({config}, Platform::nvd, "mixtral", "mine");
  EXPECT_EQ(spec.parallel.expert, 4);
  EXPECT_EQ(spec.parallel.expert_tensor, 2);
  const std::string error = only_error({config, {}, {"parallelism.mine.mixtral.nvd.EP=3"}});
  EXPECT_NE(error.find("EP 3 does not divide the 8 experts"), std::string::npos) << error;
  EXPECT_NE(error.find("a valid layout: {TP: 2, PP: 1, EP: 2, ETP: 2, DP: 4, GA: 4}"), std::string::npos) << error;
}

}  // namespace
}  // namespace tprimat::suite

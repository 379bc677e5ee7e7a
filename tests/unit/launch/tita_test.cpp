#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "launch/frameworks.h"
#include "launch/torchtitan_config.h"
#include "unit/launch/changes.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

const FrameworkModule& tita(Platform platform) { return require_framework(Framework::tita, platform); }

class TitaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("launch tita " + std::to_string(::getpid()));
    ::setenv("TPRIMAT_FRAMEWORKS", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("TPRIMAT_FRAMEWORKS");
    fs::remove_all(folder_);
  }

  static std::string file_of(const LaunchPlan& plan, const std::string& path) {
    for (const GeneratedFile& file : plan.files)
      if (file.path == path) return file.content;
    ADD_FAILURE() << path << " is not among the files";
    return {};
  }
  std::string toml() const { return file_of(plan(), "/out/runs/x/torchtitan.toml"); }
  LaunchPlan plan() const { return plan_launch(tita(request_.platform), request_); }
  std::string refusal() const {
    try {
      plan();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }
  std::map<std::string, std::string> deviations() const {
    std::map<std::string, std::string> found;
    for (const Deviation& each : plan().deviations) found[each.key] = each.effective;
    return found;
  }
  void expect_lines(const std::vector<const char*>& lines) const {
    const std::string text = "\n" + toml();
    for (const char* line : lines)
      EXPECT_NE(text.find("\n" + std::string(line) + "\n"), std::string::npos) << line << "\n" << text;
  }

  fs::path folder_;
  LaunchRequest request_ = base_request(Platform::nvd);
};

TEST_F(TitaTest, IsFoundInItsEnvironment) {
  EXPECT_FALSE(tita(Platform::cpu).find({}));
  fs::create_directories(folder_ / "tita/lib/python3.11/site-packages/torchtitan-0.2.2.dist-info");
  EXPECT_FALSE(tita(Platform::cpu).find({}));
  write_file_atomically(folder_ / "tita/bin/python", "#!/bin/sh\n");
  ASSERT_TRUE(tita(Platform::cpu).find({}));
  EXPECT_EQ(tita(Platform::cpu).find({})->version, "0.2.2");
  EXPECT_EQ(tita(Platform::cpu).find({})->place, (folder_ / "tita").string());
}

TEST_F(TitaTest, PlansTheAdapterUnderTorchrunWithTorchtitansOptions) {
  request_.checkout = {};
  request_.arguments = {"--compile.enable"};
  request_.settings.flash_attention = true;
  const LaunchPlan planned = plan();
  const std::vector<std::string> wanted = {(folder_ / "tita/bin/python").string(),
                                           "-m",
                                           "torch.distributed.run",
                                           "--standalone",
                                           "--nproc-per-node",
                                           "4",
                                           "/out/runs/x/adapter/train_tita.py",
                                           "--spec",
                                           "/out/runs/x/train_spec.json",
                                           "--compile.enable"};
  EXPECT_EQ(planned.command, wanted);
  EXPECT_EQ(planned.environment.at("TPRIMAT_FLASH_ATTENTION"), "on");
  EXPECT_EQ(planned.steps_path, "/out/runs/x/steps.jsonl");
  EXPECT_NE(file_of(planned, "/out/runs/x/adapter/titan_models.py").find("llama3"), std::string::npos);
  const Json spec = parse_json(file_of(planned, "/out/runs/x/train_spec.json"), "spec");
  EXPECT_EQ(train_spec_from_json(spec, "spec"), request_.spec);
}

TEST_F(TitaTest, ItsFileHasTheTrainingInTorchtitansWords) {
  expect_lines({"[job]",
                "dump_folder = \"/out/runs/x/torchtitan\"",
                "name = \"llama3\"",
                "flavor = \"base\"",
                "converters = []",
                "lr = 0.0003",
                "min_lr_factor = 0.0",
                "eps = 1e-08",
                "decay_type = \"cosine\"",
                "dataset = \"/data/tokens\"",
                "local_batch_size = 2",
                "global_batch_size = 32",
                "max_norm = 1.0",
                "dtype = \"float32\"",
                "mixed_precision_param = \"bfloat16\"",
                "data_parallel_shard_degree = 4",
                "fsdp_reshard_after_forward = \"default\"",
                "mode = \"none\"",
                "seed = 42",
                "deterministic = false"});
  EXPECT_EQ(toml().find("decay_ratio"), std::string::npos);
  EXPECT_EQ(toml().find("quantize"), std::string::npos);
  EXPECT_EQ(toml().find("pipeline_parallel_schedule"), std::string::npos);
}

TEST_F(TitaTest, NoClippingAndAConstantRateHaveValuesOfTheirOwn) {
  request_.spec.optimizer.clip_grad_norm = 0;
  request_.spec.optimizer.schedule = ScheduleKind::constant;
  request_.spec.parallel.zero_stage = 2;
  expect_lines({"max_norm = inf", "decay_ratio = 0.0", "fsdp_reshard_after_forward = \"never\""});
}

TEST_F(TitaTest, APipelineTakesTheBatchOfARankAtOnce) {
  request_.spec.parallel = {.pipeline = 2, .virtual_pipeline = 2, .data = 4, .zero_stage = 3};
  expect_lines({"local_batch_size = 8", "pipeline_parallel_microbatch_size = 2", "pipeline_parallel_degree = 2",
                "pipeline_parallel_schedule = \"Interleaved1F1B\"", "pipeline_parallel_layers_per_stage = 2",
                "pipeline_parallel_first_stage_less_layers = 0", "fsdp_reshard_after_forward = \"always\""});
  request_.spec.parallel.ends_as_layers = true;
  request_.spec.parallel.virtual_pipeline = 1;
  expect_lines({"pipeline_parallel_schedule = \"1F1B\"", "pipeline_parallel_layers_per_stage = 5",
                "pipeline_parallel_last_stage_less_layers = 1"});
}

TEST_F(TitaTest, Fp8IsItsConverterOfLinearLayers) {
  request_.spec.precision = Precision::fp8;
  expect_lines({"converters = [\"quantize.linear.float8\"]", "[quantize.linear.float8]", "filter_fqns = [\"output\"]",
                "enable_fsdp_float8_all_gather = false"});
  EXPECT_EQ(toml().find("recipe_name"), std::string::npos);
  request_.settings.fp8_param = true;
  expect_lines({"enable_fsdp_float8_all_gather = true", "precompute_float8_dynamic_scale_for_fsdp = true"});
  request_.settings.fp8_hybrid = false;
  EXPECT_NE(refusal().find("gathers weights in fp8 only with"), std::string::npos);
  request_.settings.fp8_param = false;
  expect_lines({"recipe_name = \"rowwise\""});
}

TEST_F(TitaTest, TextIsQuotedAsInToml) {
  request_.spec.data.dataset = "/data/a \"b\"\n\\";
  expect_lines({"dataset = \"/data/a \\\"b\\\"\\u000a\\\\\""});
}

TEST_F(TitaTest, NormsOnQueriesOrHeadsOfTheirOwnWidthMakeAQwen3) {
  request_.spec.model.qk_norm = true;
  expect_lines({"name = \"qwen3\""});
  request_.spec.model.qk_norm = false;
  request_.spec.model.head_dim = 128;
  expect_lines({"name = \"qwen3\""});
}

TEST_F(TitaTest, WhatItDoesOtherwiseIsSaid) {
  EXPECT_EQ(deviations(), (std::map<std::string, std::string>{{"zero_stage", "3"}}));
  request_.spec.parallel = {.tensor = 2, .data = 2, .zero_stage = 3};
  request_.spec.offload = Offload::optimizer;
  request_.spec.recompute = Recompute::selective;
  request_.spec.optimizer.moments = MomentFormat::bf16;
  request_.spec.optimizer.master_weights = false;
  const auto found = deviations();
  EXPECT_EQ(found.count("zero_stage"), 0u);
  EXPECT_EQ(found.at("sequence_parallel"), "true");
  EXPECT_EQ(found.at("offload"), "parameters");
  EXPECT_EQ(found.at("weight_rounding"), "to nearest");
  EXPECT_NE(found.at("recompute").find("every second product"), std::string::npos);
  request_.spec.parallel.sequence_parallel = true;
  EXPECT_EQ(deviations().count("sequence_parallel"), 0u);
}

struct Refusal {
  const char* sentence;
  void (*change)(LaunchRequest&);
};

const Refusal k_refusals[] = {
    {"has RMSNorm, SwiGLU and rotary positions", [](LaunchRequest& r) { r.spec.model.norm = NormKind::layer; }},
    {"rope_scaling llama3 only",
     [](LaunchRequest& r) { r.spec.model.rope_scaling = RopeScaling{RopeScalingKind::yarn}; }},
    {"window of 256 is shorter", [](LaunchRequest& r) { r.spec.model.sliding_window = 256; }},
    {"in its qwen3 only", [](LaunchRequest& r) { r.spec.model.qk_norm = r.spec.model.qkv_bias = true; }},
    {"no pipeline for its qwen3",
     [](LaunchRequest& r) {
       r.spec.model.qk_norm = true;
       r.spec.parallel.pipeline = 2;
     }},
    {"within one stage only",
     [](LaunchRequest& r) {
       r.spec.model.tied_embeddings = true;
       r.spec.parallel.pipeline = 2;
     }},
    {"trains with TP or PP in bf16 only beside DP or CP", [](LaunchRequest& r) { r.spec.parallel = {.tensor = 4}; }},
    {"does not support ZeRO-1", [](LaunchRequest& r) { r.spec.parallel.zero_stage = 1; }},
    {"TP 8 does not divide the 4 heads", [](LaunchRequest& r) { r.spec.parallel.tensor = 8; }},
    {"multiple of 2·TP·CP = 4", [](LaunchRequest& r) { r.spec.sequence_length = 2050, r.spec.parallel.tensor = 2; }},
    {"a micro-batch for each of the 8 stages", [](LaunchRequest& r) { r.spec.parallel.pipeline = 8; }},
    {"does not train in fp16", [](LaunchRequest& r) { r.spec.precision = Precision::fp16; }},
    {"does not train in tf32", [](LaunchRequest& r) { r.spec.precision = Precision::tf32; }},
    {"in the format of its weights", [](LaunchRequest& r) { r.spec.optimizer.moments = MomentFormat::bf16; }},
    {"does not support bf16 weights with fp32 matrix products",
     [](LaunchRequest& r) {
       r.spec.optimizer.moments = MomentFormat::bf16;
       r.spec.optimizer.master_weights = false;
       r.spec.precision = Precision::fp32;
     }},
    {"offloads what FSDP2 shards",
     [](LaunchRequest& r) {
       r.spec.parallel.data = 1;
       r.spec.offload = Offload::parameters;
     }},
};

TEST_F(TitaTest, WhatItCannotDoIsRefusedWithARemedy) {
  for (const Refusal& each : k_refusals) {
    request_ = base_request(Platform::nvd);
    each.change(request_);
    EXPECT_NE(refusal().find("'tita' "), std::string::npos) << each.sentence;
    EXPECT_NE(refusal().find(each.sentence), std::string::npos) << each.sentence << "\n" << refusal();
  }
}

TEST_F(TitaTest, WhatPyTorchDoesNotDoOnProcessorsIsRefusedThere) {
  request_ = base_request(Platform::cpu);
  EXPECT_EQ(refusal(), "");
  request_.spec.precision = Precision::fp8;
  request_.spec.offload = Offload::parameters;
  request_.spec.parallel.context = request_.spec.parallel.tensor = 2;
  request_.spec.model.qk_norm = true;
  const std::string all = refusal();
  for (const char* each : {"trains in fp8", "offloads from", "splits sequences", "splits its qwen3 ("})
    EXPECT_NE(all.find(each), std::string::npos) << each << "\n" << all;
  request_.platform = Platform::amd;
  EXPECT_EQ(refusal(), "");
}

TEST_F(TitaTest, WithoutFsdpTensorParallelismTakesOneFormat) {
  request_.spec.parallel = {.tensor = 4, .sequence_parallel = true};
  request_.spec.precision = Precision::fp32;
  EXPECT_EQ(refusal(), "");
  request_.spec.precision = Precision::bf16;
  request_.spec.optimizer.moments = MomentFormat::bf16;
  request_.spec.optimizer.master_weights = false;
  EXPECT_EQ(refusal(), "");
  expect_lines({"dtype = \"bfloat16\""});
}

// The shape, the split and what torchtitan leaves out stand in train_spec.json and among the deviations.
TEST_F(TitaTest, EveryOtherSettingReachesItsFile) {
  std::vector<Change> changes = optimizer_changes();
  for (const auto& list : {training_changes(), layout_changes()})
    changes.insert(changes.end(), list.begin(), list.end());
  const std::string before = toml();
  for (const Change& change : changes) {
    request_ = base_request(Platform::nvd);
    change.apply(request_);
    const std::string key = change.key;
    if (key == "split" || key == "evaluation" || key == "checkpoints" || key == "initial_weights" ||
        key == "zero_stage 3")
      continue;
    if (!refusal().empty()) continue;
    EXPECT_NE(toml(), before) << key;
  }
}

void add_keys(const LaunchRequest& request, std::set<std::string>& keys) {
  const Json sections = list_titan_settings(request);
  for (const auto& [section, settings] : sections.items())
    for (const auto& [key, value] : settings.items()) keys.insert(section + "." + key);
}

// What torchtitan's own configuration has: each key with its type and default.
TEST_F(TitaTest, EveryKeyIsOneThatTorchtitanKnows) {
  std::istringstream lines(read_file(std::string(TPRIMAT_SOURCE_DIR) + "/tests/golden/launch/torchtitan_keys.tsv"));
  std::set<std::string> known, stated;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) known.insert(line.substr(0, line.find('\t')));
  EXPECT_GT(known.size(), 50u);
  add_keys(request_, stated);
  request_.spec.parallel.pipeline = 2;
  request_.spec.precision = Precision::fp8;
  request_.settings.fp8_hybrid = false;
  request_.spec.optimizer.schedule = ScheduleKind::constant;
  add_keys(request_, stated);
  request_.spec.model.experts = base_experts();
  add_keys(request_, stated);
  EXPECT_EQ(stated, known);
}

}  // namespace
}  // namespace tprimat::suite

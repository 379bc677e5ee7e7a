#include <gtest/gtest.h>

#include <algorithm>

#include "compare/audit.h"
#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "result/peak.h"
#include "result/result_file.h"
#include "text/json.h"
#include "unit/compare/sample_runs.h"
#include "unit/json_place.h"

// Somebody changes one number in a result file: the audit must speak, and name the figure.
namespace tprimat::results {
namespace {

Json honest_file(const std::optional<Experts>& experts = {}) {
  RunResult run = sample_run("a.json", Platform::nvd, Framework::nemo, 1.0).result;
  run.model_info.shape->experts = experts;
  run.model_info.num_parameters = count_parameters(*run.model_info.shape).total();
  run.training_config.micro_batch_size = 2;
  ParallelismConfig& layout = run.parallelism_config;
  layout.strategy_name = "dp";
  layout.tensor_model_parallel_size = layout.pipeline_model_parallel_size = 1;
  layout.data_parallel_size = 8;
  layout.gradient_accumulation_steps = 4;
  SummaryOptions options;
  options.peak = catalogue_peak(run.gpu_info.device_name, Precision::bf16);
  options.usd_per_hour = 24.0;
  summarise_run(run, options);
  return run_result_to_json(run);
}

Contender read_back(const Json& json) { return {"A", "label", {{"a.json", run_result_from_json(json, "a.json")}}, {}}; }

bool speaks(const std::vector<Finding>& findings, const std::string& code, const std::string& what) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.code == code && finding.sentence.find(what) != std::string::npos && !finding.evidence.empty();
  });
}

TEST(Mutation, AnHonestFileContradictsNothing) {
  const Contender contender = read_back(honest_file());
  EXPECT_TRUE(contender.first().contradictions.empty());
  for (const Finding& finding : audit_contender(contender))
    EXPECT_EQ(finding.code.find("contradiction"), std::string::npos) << finding.sentence;
}

struct MutationCase {
  const char* name;
  const char* pointer;
  Json value;
  const char *code, *what;
};
class Mutations : public ::testing::TestWithParam<MutationCase> {};
TEST_P(Mutations, MakeTheAuditSpeak) {
  Json json = honest_file();
  Json& changed = value_at(json, GetParam().pointer);
  ASSERT_FALSE(changed.is_null()) << print_json(json).substr(0, 4000);
  changed = GetParam().value;
  const auto findings = audit_contender(read_back(json));
  EXPECT_TRUE(speaks(findings, GetParam().code, GetParam().what));
}
INSTANTIATE_TEST_SUITE_P(
    All, Mutations,
    ::testing::Values(
        MutationCase{"Batch", "/training_config/global_batch_size", 128, "rate_contradiction", "tokens/s"},
        MutationCase{"SequenceLength", "/training_config/sequence_length", 4096, "rate_contradiction", "tokens/s"},
        MutationCase{"MicroBatch", "/training_config/micro_batch_size", 4, "layout_contradiction", "GA"},
        MutationCase{"Layout", "/parallelism_config/tensor_model_parallel_size", 2, "layout_contradiction", "TP"},
        MutationCase{"Rate", "/derived/tokens_per_second_per_gpu/value", 99999.0, "rate_contradiction", "per device"},
        MutationCase{"MeanStep", "/statistics/mean", 0.5, "rate_contradiction", "mean step time"},
        MutationCase{"StepTime", "/step_times/30", 20.0, "rate_contradiction", "mean step time"},
        MutationCase{"Peak", "/derived/peak/flops_per_second", 312e12, "figure_contradiction", "peak"},
        MutationCase{"Mfu", "/derived/mfu/value", 0.9, "figure_contradiction", "MFU"},
        MutationCase{"Flops", "/derived/flops_per_token/causal~11", 1e9, "shape_contradiction", "FLOPs per token"},
        MutationCase{"QueryGroups", "/model_info/shape/num_key_value_heads", 2, "shape_contradiction",
                     "FLOPs per token"},
        MutationCase{"Layers", "/model_info/shape/num_layers", 8, "shape_contradiction", "FLOPs per token"},
        MutationCase{"Median", "/statistics/median", 0.5, "rate_contradiction", "median"},
        MutationCase{"Percentile", "/statistics/p95", 0.6, "figure_contradiction", "95th percentile"},
        MutationCase{"Count", "/statistics/count", 500, "figure_contradiction", "steady steps"},
        MutationCase{"AverageRate", "/performance_metrics/tokens_per_second_per_gpu", 99999.0, "figure_contradiction",
                     "average tokens/s per device"},
        MutationCase{"Memory", "/memory_metrics/peak_memory_allocated_gb", 0.0, "impossible_memory", "above 0 GB"},
        MutationCase{"Warmup", "/warmup/steps_excluded", 40, "rate_contradiction", "warm-up"},
        MutationCase{"Price", "/derived/usd_per_hour", 12.0, "figure_contradiction", "USD"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Mutation, AWrongPeakIsReplacedByTheCatalogues) {
  Json json = honest_file();
  const double honest = json["derived"]["mfu"]["value"].get<double>();
  json["derived"]["peak"]["flops_per_second"] = 312e12;
  EXPECT_NEAR(read_back(json).first().derived.mfu->value, honest, 1e-9);
}

TEST(Mutation, AFigureThatFollowsFromNothingIsNotShown) {
  Json json = honest_file();
  json["derived"].erase("peak");
  json["derived"]["headline_formula"] = "other";
  json["derived"]["mfu"]["value"] = 0.95;
  const Contender contender = read_back(json);
  EXPECT_FALSE(contender.first().derived.mfu);
  EXPECT_TRUE(speaks(audit_contender(contender), "figure_contradiction", "MFU 0.95"));
}

void raise_mfu(Json& json, double factor) {
  Json& derived = json["derived"];
  for (const char* formula : {"causal/1", "full/1", "6n/1"})
    derived["flops_per_token"][formula] = derived["flops_per_token"][formula].get<double>() * factor;
  for (const char* figure : {"mfu", "tflops_per_gpu"})
    derived[figure]["value"] = derived[figure]["value"].get<double>() * factor;
}

bool doubts_the_shape(const Json& json) {
  const Contender contender = read_back(json);
  const Derived& derived = contender.first().derived;
  const bool is_shown = derived.mfu || derived.tflops_per_gpu || !derived.flops_per_token.empty();
  return !is_shown && speaks(audit_contender(contender), "shape_contradiction", "the stated shape is impossible");
}

TEST(Mutation, AnImpossibleShapeHidesNoOtherEdit) {
  const Experts experts{.count = 32, .per_token = 4, .ffn_hidden_size = 1024};
  EXPECT_TRUE(read_back(honest_file(experts)).first().contradictions.empty());
  const std::pair<const char*, Json> edits[] = {{"/model_info/shape/experts/layer_interval", 0},
                                                {"/model_info/shape/experts/capacity_factor", -1},
                                                {"/model_info/shape/prediction_layers", -5},
                                                {"/model_info/shape/prediction_layers", int64_t{1} << 62}};
  for (const auto& [place, value] : edits) {
    Json json = honest_file(experts);
    value_at(json, place) = value;
    raise_mfu(json, 10);
    EXPECT_TRUE(doubts_the_shape(json)) << place;
  }
}

TEST(Mutation, FlatExpertsMustBePossible) {
  for (const int64_t count : {int64_t{0}, int64_t{-3}, int64_t{8}}) {  // 8 of which no token passes one
    Json json = honest_file();
    json["model_info"]["shape"]["num_experts"] = count;
    EXPECT_TRUE(doubts_the_shape(json)) << count;
  }
  Json huge = honest_file();
  huge["model_info"]["shape"]["num_experts"] = uint64_t{1} << 63;
  EXPECT_TRUE(doubts_the_shape(huge));
}

TEST(Mutation, ANoteAboutTheStepDoesNotExcuseTheRate) {
  Json json = honest_file();
  json["config_audit"] = Json::array({{{"key", "tokens_per_step"}, {"effective", "262144"}}});
  json["derived"]["tokens_per_second"]["value"] = 2e6;
  EXPECT_TRUE(speaks(audit_contender(read_back(json)), "rate_contradiction", "tokens/s"));
}

// A gate must not pass a slowdown that a batch of another size hides.
struct LayoutCase {
  const char* name;
  bool contradicts;
  void (*change)(RunResult&);
};
class Layouts : public ::testing::TestWithParam<LayoutCase> {};
TEST_P(Layouts, ThatDoNotMultiplyCloseTheGate) {
  const auto written = [](const char* path, bool changed) {
    RunResult run = run_result_from_json(honest_file(), path);
    for (size_t i = 0; changed && i < run.step_times.size(); ++i) run.step_times[i] *= 1.001 + 1e-4 * (i % 7);
    if (changed) GetParam().change(run);
    summarise_run(run, stored_options(run));
    return LoadedRun{path, run_result_from_json(run_result_to_json(run), path)};
  };
  const CompareOptions options{.baseline = "a.json", .gates = {parse_gate("tokens_per_second < -30%")}};
  const Comparison comparison = compare_runs({{written("a.json", false), written("b.json", true)}, {}}, options);
  const GateResult& gate = comparison.gates.at(0);
  EXPECT_EQ(gate.outcome == GateOutcome::not_comparable, GetParam().contradicts) << describe_gate(gate);
  EXPECT_EQ(comparison_status(comparison), GetParam().contradicts ? ExitStatus::not_comparable : ExitStatus::done);
}
INSTANTIATE_TEST_SUITE_P(
    All, Layouts,
    ::testing::Values(
        LayoutCase{"Honest", false, [](RunResult&) {}},
        LayoutCase{"LargerBatch", true, [](RunResult& run) { run.training_config.global_batch_size = 100; }},
        LayoutCase{"MoreRanks", true, [](RunResult& run) { run.parallelism_config.tensor_model_parallel_size = 2; }},
        LayoutCase{"MoreSequenceRanks", true, [](RunResult& run) { run.parallelism_config.context_parallel_size = 2; }},
        LayoutCase{"MoreExpertRanks", true,
                   [](RunResult& run) { run.parallelism_config.expert_model_parallel_size = 64; }},
        LayoutCase{"ExpertRanksThatDoNotDivide", true,
                   [](RunResult& run) { run.parallelism_config.expert_model_parallel_size = 3; }},
        LayoutCase{"MoreExpertTensorRanks", true,
                   [](RunResult& run) {
                     run.parallelism_config.expert_model_parallel_size = 8;
                     run.parallelism_config.expert_tensor_parallel_size = 8;
                   }},
        LayoutCase{"ExpertRanksThatDivide", false,
                   [](RunResult& run) {
                     run.parallelism_config.expert_model_parallel_size = 4;
                     run.parallelism_config.expert_tensor_parallel_size = 2;
                   }},
        LayoutCase{"FewerDevices", true,
                   [](RunResult& run) { run.training_config.num_gpus = run.gpu_info.device_count = 4; }},
        LayoutCase{"OtherTokens", true, [](RunResult& run) { run.training_config.tokens_per_step = 1000; }},
        LayoutCase{"BatchWithoutDataParallelism", true,
                   [](RunResult& run) {
                     run.parallelism_config.data_parallel_size.reset();
                     run.training_config.global_batch_size = 100;
                   }},
        LayoutCase{"AccumulationIsNotTold", false,
                   [](RunResult& run) { run.parallelism_config.gradient_accumulation_steps.reset(); }},
        LayoutCase{"DataParallelismIsNotTold", false,
                   [](RunResult& run) { run.parallelism_config.data_parallel_size.reset(); }},
        LayoutCase{"SequenceRanksWithinDataParallelOnes", false,
                   [](RunResult& run) {
                     run.parallelism_config.context_parallel_size = 2;
                     run.parallelism_config.gradient_accumulation_steps = 8;
                   }},
        LayoutCase{"ShardedGroupsThatAreRepeated", false,
                   [](RunResult& run) {
                     run.parallelism_config.data_parallel_size = 4;
                     run.effective_config =
                         std::map<std::string, std::string>{{"parallelism.data_parallel_replicate_degree", "2"}};
                   }},
        LayoutCase{"SameTokens", false, [](RunResult& run) { run.training_config.tokens_per_step = 64 * 2048; }}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Mutation, AChangedBatchWithholdsTheVerdictButNotTheRates) {
  Json json = honest_file();
  json["training_config"]["global_batch_size"] = 128;
  LoadedRuns runs;
  runs.runs = {{"a.json", run_result_from_json(honest_file(), "a.json")},
               {"b.json", run_result_from_json(json, "b.json")}};
  const Comparison comparison = compare_runs(std::move(runs), {});
  EXPECT_EQ(comparison_status(comparison), ExitStatus::not_comparable);
  const ModelGroup& group = comparison.groups.front();
  EXPECT_EQ(group.pairs.front().fairness, Fairness::not_comparable);
  EXPECT_NE(headline(comparison, group, group.pairs.front()).find("Raw ratio, no verdict"), std::string::npos);
}

}  // namespace
}  // namespace tprimat::results

#include "compare/figure_meanings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "compare/compare_runs.h"
#include "compare/gates.h"
#include "result/peak.h"
#include "unit/compare/sample_runs.h"

// A gate, a table and a ratio hold figures against each other only where they mean the same.
namespace tprimat::results {
namespace {

LoadedRun full_run(const char* path, uint64_t seed) {
  LoadedRun run = noisy_run(path, Platform::nvd, Framework::nemo, 1, seed);
  TelemetrySummary board;
  board.source = "nvml";
  board.mean_power_watts = 4800;
  board.energy_joules = 4800 * 59;
  board.energy_valid = true;
  board.peak_memory_used_gb = 70;
  run.result.telemetry = {board};
  run.result.memory_metrics.peak_memory_reserved_gb = 60;
  run.result.memory_metrics.measurement_method = "torch";
  run.result.dataset = "c4";
  summarise_run(run.result,
                {.peak = catalogue_peak(run.result.gpu_info.device_name, Precision::bf16), .usd_per_hour = 16});
  return run;
}

Comparison compare_with(void (*change)(RunResult&), const std::string& gate = "") {
  LoadedRuns runs{{full_run("a.json", 1), full_run("b.json", 2)}, {}};
  change(runs.runs[1].result);
  CompareOptions options{.baseline = "a.json"};
  if (!gate.empty()) options.gates.push_back(parse_gate(gate));
  return compare_runs(std::move(runs), options);
}

struct UnlikeCase {
  const char* name;
  const char* metric;
  void (*change)(RunResult&);
};
class Unlike : public ::testing::TestWithParam<UnlikeCase> {};
TEST_P(Unlike, FiguresPassNoGateAndHaveNoRatio) {
  const auto same = compare_with([](RunResult&) {}, fmt::format("{} > 1000%", GetParam().metric));
  EXPECT_EQ(same.gates.at(0).outcome, GateOutcome::passed) << describe_gate(same.gates[0]);
  const auto unlike = compare_with(GetParam().change, fmt::format("{} > 1000%", GetParam().metric));
  EXPECT_EQ(unlike.gates.at(0).outcome, GateOutcome::not_comparable) << describe_gate(unlike.gates[0]);
  EXPECT_EQ(comparison_status(unlike), ExitStatus::not_comparable);
  EXPECT_EQ(unlike.groups[0].pairs[0].ratios.count(GetParam().metric), 0u);
}

void other_steps(RunResult& run) {
  for (auto* series : {&run.step_times, &run.loss_values, &run.learning_rates}) series->resize(40);
  run.training_config.max_steps = 40;
  summarise_run(run, stored_options(run));
}
void double_batch(RunResult& run) {
  run.training_config.global_batch_size = 128;
  summarise_run(run, stored_options(run));
}
void means_of_ten(RunResult& run) {
  run.steps.emplace();
  run.steps->mean_of = std::vector<int64_t>(run.step_times.size(), 10);
  run.training_config.max_steps = 600;
}
void from_the_machine(RunResult& run) {
  run.telemetry[0].source = "ipmi";
  run.telemetry[0].mean_power_watts = 9000;
}

INSTANTIATE_TEST_SUITE_P(
    All, Unlike,
    ::testing::Values(
        UnlikeCase{"TotalTimeOfOtherSteps", "total_time", other_steps},
        UnlikeCase{"TotalTimeOfAnotherBatch", "total_time", double_batch},
        UnlikeCase{"LossAtAnotherStep", "final_loss", other_steps},
        UnlikeCase{"LossOfOtherTokens", "final_loss", double_batch},
        UnlikeCase{"LossOnOtherData", "final_loss", [](RunResult& run) { run.dataset = "wiki"; }},
        UnlikeCase{"SpreadOfMeans", "p95_step_time", means_of_ten},
        UnlikeCase{"VariationOfMeans", "step_time_cv", means_of_ten},
        UnlikeCase{"StepOfAnotherBatch", "mean_step_time", double_batch},
        UnlikeCase{"StepOfMoreDevices", "median_step_time",
                   [](RunResult& run) { run.training_config.num_gpus = run.gpu_info.device_count = 16; }},
        UnlikeCase{"RateOfMoreDevices", "tokens_per_second",
                   [](RunResult& run) { run.training_config.num_gpus = run.gpu_info.device_count = 16; }},
        UnlikeCase{"PowerOfTheMachine", "mean_power", from_the_machine},
        UnlikeCase{"EnergyOfTheMachine", "joules_per_token", from_the_machine},
        UnlikeCase{"EnergyDenied", "joules_per_token",
                   [](RunResult& run) {
                     run.contradictions = {{"joules per token", "1", "2"}};
                   }},
        UnlikeCase{"PowerOfOneDevice", "mean_power", [](RunResult& run) { run.telemetry[0].source = "nvml:0"; }},
        UnlikeCase{"PowerOfIdleDevices", "joules_per_token",
                   [](RunResult& run) {
                     run.telemetry[0].mean_power_watts = 70;
                     run.telemetry[0].mean_utilisation = 0.9;
                   }},
        UnlikeCase{"MemoryByAnother", "peak_memory_reserved_gb",
                   [](RunResult& run) { run.memory_metrics.measurement_method = "nvidia-smi"; }},
        UnlikeCase{"MemoryOfProcesses", "peak_device_used_gb",
                   [](RunResult& run) { run.telemetry[0].source = "proc"; }},
        UnlikeCase{"MemoryThatIsImpossible", "peak_memory_allocated_gb",
                   [](RunResult& run) { run.memory_metrics.peak_memory_allocated_gb = 200; }},
        UnlikeCase{"CostAtAnotherPrice", "usd_per_1e12_tokens",
                   [](RunResult& run) {
                     run.derived.usd_per_hour = 8;
                     summarise_run(run, stored_options(run));
                   }},
        UnlikeCase{"CostForNothing", "usd_per_1e12_tokens",
                   [](RunResult& run) {
                     run.derived.usd_per_hour = 1e-9;
                     summarise_run(run, stored_options(run));
                   }},
        UnlikeCase{"MfuByAnotherPeak", "mfu", [](RunResult& run) { run.derived.peak->id = "config:mine"; }},
        UnlikeCase{"FlopsByAnotherFormula", "tflops_per_gpu",
                   [](RunResult& run) { run.derived.headline_formula = "full~1"; }}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(UnlikeFigures, EveryCodeOfAMetricIsARule) {
  std::set<std::string_view> of_pairs, of_runs;
  for (const PairRule& rule : pair_rules()) of_pairs.insert(rule.code);
  for (const RunRule& rule : run_rules()) of_runs.insert(rule.code);
  for (const Metric& metric : metrics()) {
    for (const std::string_view code : metric.unlike) EXPECT_TRUE(code.empty() || of_pairs.contains(code)) << code;
    for (const std::string_view code : metric.doubted) EXPECT_TRUE(code.empty() || of_runs.contains(code)) << code;
  }
}

// A log of every tenth step prints its last one besides.
TEST(UnlikeFigures, TheLastLineOfALogDoesNotSpeakForAll) {
  const auto in_tens = [](const char* path, uint64_t seed, int64_t last) {
    RunResult run = full_run(path, seed).result;
    run.steps.emplace().mean_of = std::vector<int64_t>(run.step_times.size(), 10);
    run.steps->mean_of->back() = last;
    run.steps->numbers.emplace();
    for (const int64_t span : *run.steps->mean_of)
      run.steps->numbers->push_back(span + (run.steps->numbers->empty() ? 0 : run.steps->numbers->back()));
    return run;
  };
  const RunResult whole = in_tens("a.json", 1, 10), cut = in_tens("b.json", 2, 5);
  EXPECT_EQ(record_span(whole), record_span(cut));
  EXPECT_NE(record_span(whole), record_span(full_run("c.json", 3).result));
  EXPECT_EQ(loss_steps(whole), "the mean of the last 60 of 600 steps");
  EXPECT_EQ(loss_steps(cut), "the mean of the last 60 of 595 steps");
}

TEST(UnlikeFigures, CountersOfOneKindAreOneWhateverReadsThem) {
  const auto by_tool = [](RunResult& run) { run.telemetry[0].source = "nvidia-smi"; };
  EXPECT_EQ(compare_with(by_tool, "joules_per_token > 10%").gates.at(0).outcome, GateOutcome::passed);
}

}  // namespace
}  // namespace tprimat::results

#include "compare/compare_runs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "base/error.h"
#include "compare/contender.h"
#include "compare/verdict.h"
#include "example_data.h"
#include "unit/compare/sample_runs.h"

namespace tprimat::results {
namespace {

TEST(Judge, IsByTheWholeInterval) {
  const auto verdict = [](double low, double high) { return judge(Estimate{(low + high) / 2, low, high}, 0.01); };
  EXPECT_EQ(verdict(1.02, 1.05), Verdict::faster);
  EXPECT_EQ(verdict(0.90, 0.95), Verdict::slower);
  EXPECT_EQ(verdict(0.995, 1.005), Verdict::same);
  EXPECT_EQ(verdict(1.005, 1.05), Verdict::inconclusive);
  EXPECT_EQ(verdict(0.97, 1.03), Verdict::inconclusive);
  EXPECT_EQ(judge(Estimate{2.0, {}, {}}, 0.01), Verdict::inconclusive) << "no interval, no verdict";
  EXPECT_EQ(judge({}, 0.01), Verdict::inconclusive);
}

TEST(CompareRuns, FasterWithRatioAndInterval) {
  const Comparison comparison = compare_runs(two_runs(1.5), {});
  ASSERT_EQ(comparison.groups.size(), 1u);
  ASSERT_EQ(comparison.groups[0].pairs.size(), 1u);
  const Pair& pair = comparison.groups[0].pairs[0];
  EXPECT_TRUE(pair.comparable);
  EXPECT_EQ(pair.verdict, Verdict::faster);
  EXPECT_NEAR(pair.ratio->value, 1.5, 1e-3);
  EXPECT_LT(*pair.ratio->low, 1.5);
  EXPECT_GT(*pair.ratio->high, 1.5);
  EXPECT_EQ(comparison_status(comparison), ExitStatus::done);
  EXPECT_EQ(headline(comparison, comparison.groups[0], pair).find("AMD Primus is 1.500x faster than NVIDIA NeMo"), 0u);
}

TEST(CompareRuns, WithoutAWinnerTheSentenceGoesTheWayOfTheTable) {
  const Comparison comparison = compare_runs(two_runs(0.999), {});
  const Pair& pair = comparison.groups[0].pairs[0];
  ASSERT_EQ(pair.verdict, Verdict::inconclusive);
  const std::string sentence = headline(comparison, comparison.groups[0], pair);
  EXPECT_EQ(sentence.find("AMD Primus against NVIDIA NeMo is inconclusive: 0.999"), 0u) << sentence;
  EXPECT_NE(pair.explanation.find(sentence.substr(sentence.rfind("interval ") + 9, 6)), std::string::npos)
      << sentence << '\n'
      << pair.explanation;
}

TEST(CompareRuns, NamesOfOneModelAreOneGroup) {
  LoadedRuns runs = two_runs(1.5);
  runs.runs[1].result.model_info.name = "meta-llama/Llama-3.1-8B";
  const Comparison comparison = compare_runs(runs, {});
  ASSERT_EQ(comparison.groups.size(), 1u);
  EXPECT_EQ(comparison.groups[0].model, "Llama 3.1 8B");
  EXPECT_EQ(comparison.groups[0].pairs.size(), 1u);
  EXPECT_EQ(compare_runs(runs, {.models = {"llama"}}).groups[0].contenders.size(), 2u);
  runs.runs[0].result.model_info.name = "my model", runs.runs[1].result.model_info.name = "My-Model";
  EXPECT_EQ(compare_runs(runs, {}).groups.size(), 1u);
  runs.runs[1].result.model_info.name.clear();
  EXPECT_EQ(compare_runs(runs, {}).groups.back().model, "unknown model");
}

TEST(CompareRuns, StepTimesOfUnknownWorkHaveNoRatio) {
  LoadedRuns runs = two_runs(1.5);
  EXPECT_EQ(compare_runs(runs, {}).groups[0].pairs[0].ratios.count("mean_step_time"), 1u);
  for (LoadedRun& run : runs.runs) run.result.training_config.sequence_length.reset();
  const Pair pair = compare_runs(runs, {}).groups[0].pairs[0];
  EXPECT_EQ(pair.ratios.count("mean_step_time"), 0u);
  EXPECT_EQ(pair.ratios.count("tokens_per_second"), 1u);
}

TEST(CompareRuns, NoVariationHasNoRatio) {
  LoadedRuns runs = two_runs(1.5);
  for (size_t i = 1; i < runs.runs[1].result.step_times.size(); ++i) runs.runs[1].result.step_times[i] = 2.4657;
  runs.runs[1] = again(runs.runs[1]);
  const Comparison comparison = compare_runs(runs, {});
  EXPECT_EQ(read_figure(comparison.groups[0].contenders[1], *find_metric("step_time_cv"))->value, 0);
  EXPECT_EQ(comparison.groups[0].pairs[0].ratios.count("step_time_cv"), 0u);
}

TEST(CompareRuns, NumberedFilesFromOtherDevicesAreNoRepetitions) {
  LoadedRuns runs{{sample_run("a_r1.json", Platform::nvd, Framework::nemo, 1.0),
                   sample_run("a_r2.json", Platform::nvd, Framework::nemo, 1.1)},
                  {}};
  EXPECT_EQ(compare_runs(runs, {}).groups[0].contenders.size(), 1u);
  runs.runs[1].result.gpu_info.device_name = "NVIDIA H200";
  EXPECT_EQ(compare_runs(runs, {}).groups[0].contenders.size(), 2u);
  runs.runs[1].result.gpu_info.device_name = runs.runs[0].result.gpu_info.device_name;
  runs.runs[1].result.training_config.recompute = "full";
  EXPECT_EQ(compare_runs(runs, {}).groups[0].contenders.size(), 1u) << "the other one does not tell";
  runs.runs[0].result.training_config.recompute = "none";
  EXPECT_EQ(compare_runs(runs, {}).groups[0].contenders.size(), 2u);
}

TEST(CompareRuns, ARepetitionAgreesWithEveryOther) {
  LoadedRuns runs{{sample_run("a_r1.json", Platform::nvd, Framework::nemo, 1.0),
                   sample_run("a_r2.json", Platform::nvd, Framework::nemo, 1.1),
                   sample_run("a_r3.json", Platform::nvd, Framework::nemo, 1.8)},
                  {}};
  runs.runs[0].result.gpu_info.device_name.clear();
  EXPECT_EQ(compare_runs(runs, {}).groups[0].contenders.size(), 1u);
  runs.runs[2].result.gpu_info.device_name = "NVIDIA A100-SXM4-80GB";
  EXPECT_EQ(compare_runs(runs, {}).groups[0].contenders.size(), 2u);
}

TEST(CompareRuns, FiguresOfANameKeepTheirPoint) {
  LoadedRuns runs = two_runs(1.5);
  runs.runs[0].result.model_info.name = "corp-1.5B", runs.runs[1].result.model_info.name = "corp-15B";
  EXPECT_EQ(compare_runs(runs, {}).groups.size(), 2u);
  EXPECT_EQ(compare_runs(runs, {.models = {"Corp 1_5b"}}).groups.size(), 1u);
  runs.runs[1].result.model_info.name = "corp_1-5b";
  EXPECT_EQ(compare_runs(runs, {}).groups.size(), 1u);
}

TEST(CompareRuns, SlowerSubjectIsToldFromTheFasterSide) {
  const Comparison comparison = compare_runs(two_runs(0.5), {});
  EXPECT_EQ(comparison.groups[0].pairs[0].verdict, Verdict::slower);
  EXPECT_EQ(headline(comparison, comparison.groups[0], comparison.groups[0].pairs[0])
                .find("NVIDIA NeMo is 2.000x faster than AMD Primus"),
            0u);
}

TEST(CompareRuns, RepeatedEqualRunsAreTheSame) {
  LoadedRuns runs;
  for (uint64_t k = 1; k <= 3; ++k) {
    runs.runs.push_back(noisy_run(fmt::format("a_r{}.json", k), Platform::nvd, Framework::nemo, 1, k));
    runs.runs.push_back(noisy_run(fmt::format("b_r{}.json", k), Platform::amd, Framework::prim, 1, 10 + k));
  }
  EXPECT_EQ(compare_runs(runs, {}).groups[0].pairs[0].verdict, Verdict::same);
}

TEST(CompareRuns, OneRunASideIsNeverTheSame) {
  const Pair pair = compare_runs(two_runs(1.0), {}).groups[0].pairs[0];
  EXPECT_EQ(pair.verdict, Verdict::inconclusive);
  EXPECT_NE(pair.explanation.find("assuming a spread between runs of 2 %; 2 more runs per side would measure it"),
            std::string::npos)
      << pair.explanation;
  EXPECT_EQ(pair.statistics->run_spread, RunSpread::assumed);
}

TEST(CompareRuns, NeverNamesAWinnerOfDifferentWork) {
  LoadedRuns runs = two_runs(3.0);
  runs.runs[0].result.training_config.sequence_length = 8192;
  runs.runs[0] = again(runs.runs[0]);
  const Comparison comparison = compare_runs(runs, {});
  const std::string text = headline(comparison, comparison.groups[0], comparison.groups[0].pairs[0]);
  EXPECT_EQ(text.find("faster"), std::string::npos) << text;
  EXPECT_NE(text.find("8192 against 2048"), std::string::npos) << text;
  EXPECT_EQ(comparison_status(comparison), ExitStatus::not_comparable);
}

TEST(CompareRuns, StepTimesOfDifferentBatchesHaveNoRatio) {
  LoadedRuns runs = two_runs(1.5);
  runs.runs[0].result.training_config.global_batch_size = 128;
  runs.runs[0] = again(runs.runs[0]);
  const Pair pair = compare_runs(runs, {}).groups[0].pairs[0];
  EXPECT_TRUE(pair.comparable);
  EXPECT_NEAR(pair.ratio->value, 0.75, 1e-3);
  EXPECT_TRUE(pair.ratios.contains("tokens_per_second"));
  EXPECT_FALSE(pair.ratios.contains("mean_step_time"));
}

TEST(CompareRuns, ForceTellsTheWinnerWithTheReasonBesideIt) {
  LoadedRuns runs = two_runs(3.0);
  runs.runs[0].result.precision = Precision::fp8;
  const Comparison comparison = compare_runs(runs, {.force = true});
  const std::string text = headline(comparison, comparison.groups[0], comparison.groups[0].pairs[0]);
  EXPECT_NE(text.find("3.000x faster"), std::string::npos) << text;
  EXPECT_NE(text.find("precisions differ"), std::string::npos) << text;
  EXPECT_EQ(comparison_status(comparison), ExitStatus::not_comparable);
}

TEST(CompareRuns, DifferentModelsAreNoPair) {
  LoadedRuns runs = two_runs(2.0);
  runs.runs[1].result.model_info.name = "qwen";
  const Comparison comparison = compare_runs(runs, {});
  ASSERT_EQ(comparison.groups.size(), 2u);
  EXPECT_TRUE(comparison.groups[0].pairs.empty());
  EXPECT_EQ(comparison_status(comparison), ExitStatus::done);
}

TEST(CompareRuns, OneInvalidRunAloneIsWorkFailed) {
  LoadedRuns runs{{sample_run("a.json", Platform::nvd, Framework::nemo, 1.0)}, {}};
  runs.runs[0].result.status = RunStatus::failed;
  EXPECT_EQ(comparison_status(compare_runs(runs, {})), ExitStatus::work_failed);
}

TEST(CompareRuns, RepetitionsAreOneParticipant) {
  LoadedRuns runs;
  uint64_t seed = 0;
  for (const char* file : {"x/t_r1.json", "x/t_r2.json", "x/t_r3.json", "y/t_r1.json"})
    runs.runs.push_back(noisy_run(file, Platform::nvd, Framework::nemo, 1.0, ++seed));
  const Comparison comparison = compare_runs(runs, {});
  ASSERT_EQ(comparison.groups[0].contenders.size(), 2u);
  EXPECT_EQ(comparison.groups[0].contenders[0].runs.size(), 3u);
}

TEST(CompareRuns, FilesOfOtherWorkAreNoRepetitionsWhateverTheirNames) {
  LoadedRuns runs;
  runs.runs.push_back(sample_run("x/t_r1.json", Platform::nvd, Framework::nemo, 1.0));
  runs.runs.push_back(sample_run("x/t_r2.json", Platform::amd, Framework::prim, 1.0));
  runs.runs.push_back(sample_run("x/t_r3.json", Platform::nvd, Framework::nemo, 1.0));
  runs.runs.back().result.training_config.sequence_length = 1024;
  runs.runs.push_back(sample_run("x/t_r4.json", Platform::nvd, Framework::nemo, 1.01));
  const auto contenders = compare_runs(runs, {}).groups[0].contenders;
  ASSERT_EQ(contenders.size(), 3u);
  EXPECT_EQ(contenders[0].runs.size(), 2u);
}

TEST(CompareRuns, TooManyToPairAreComparedWithTheBest) {
  LoadedRuns runs;
  for (int i = 0; i < 101; ++i)
    runs.runs.push_back(
        sample_run("m" + std::to_string(i) + ".json", Platform::nvd, Framework::nemo, i == 60 ? 1 : 2, 9));
  const ModelGroup group = compare_runs(runs, {}).groups[0];
  EXPECT_TRUE(group.against_best);
  EXPECT_EQ(group.pairs.size(), 100u);
  EXPECT_EQ(group.contenders[0].runs[0].path, "m60.json");
  for (const Pair& pair : group.pairs) EXPECT_EQ(pair.verdict, Verdict::slower) << pair.explanation;
  EXPECT_EQ(compare_runs(runs, {.baseline = "m5.json"}).groups[0].pairs.size(), 100u);
}

TEST(CompareRuns, ManyRunsOfOneThingHaveTheIntervalOfTheirSpread) {
  LoadedRuns runs;
  for (const char* folder : {"x", "y"})
    for (int i = 1; i <= 101; ++i)
      runs.runs.push_back(sample_run(std::string(folder) + "/t_r" + std::to_string(i) + ".json", Platform::nvd,
                                     Framework::nemo, (folder[0] == 'x' ? 1.0 : 1.1) * (1 + 0.001 * (i % 7) + 1e-6 * i),
                                     9));
  const Pair pair = compare_runs(runs, {}).groups[0].pairs[0];
  EXPECT_EQ(pair.verdict, Verdict::slower);
  EXPECT_LT(*pair.ratio->high - *pair.ratio->low, 0.002);
  EXPECT_GT(*pair.ratio->high - *pair.ratio->low, 0.0005);
}

// Labels in their order, with the figures and the verdict against every other.
std::map<std::string, std::map<std::string, Verdict>> verdicts_by_label(const Comparison& comparison) {
  std::map<std::string, std::map<std::string, Verdict>> all;
  const ModelGroup& group = comparison.groups[0];
  for (const Pair& pair : group.pairs) {
    const std::string &a = group.contenders[pair.subject].label, &b = group.contenders[pair.reference].label;
    const bool decided = pair.verdict == Verdict::faster || pair.verdict == Verdict::slower;
    all[a][b] = pair.verdict;
    all[b][a] = !decided ? pair.verdict : pair.verdict == Verdict::faster ? Verdict::slower : Verdict::faster;
  }
  return all;
}

TEST(CompareRuns, TheOrderOfFilesDoesNotMatter) {
  LoadedRuns runs;
  for (int i = 0; i < 12; ++i)
    runs.runs.push_back(sample_run("d" + std::to_string(i / 3) + "/t_r" + std::to_string(i % 3) + ".json",
                                   Platform::nvd, Framework::nemo, 1 + 0.02 * (i / 3) + 0.0005 * (i % 3)));
  const auto wanted = verdicts_by_label(compare_runs(runs, {}));
  ASSERT_EQ(wanted.size(), 4u);
  std::mt19937_64 random(3);
  for (int i = 0; i < 5; ++i) {
    std::shuffle(runs.runs.begin(), runs.runs.end(), random);
    EXPECT_EQ(verdicts_by_label(compare_runs(runs, {})), wanted);
  }
}

TEST(CompareRuns, FiltersLeaveTheRestOut) {
  const Comparison comparison = compare_runs(two_runs(1.5), {.platforms = {Platform::amd}});
  ASSERT_EQ(comparison.groups[0].contenders.size(), 1u);
  EXPECT_EQ(comparison.groups[0].contenders[0].label, "AMD Primus");
  EXPECT_THROW(compare_runs(two_runs(1.5), {.models = {"gpt"}}), Error);
  EXPECT_THROW(compare_runs({}, {}), Error);
}

TEST(CompareRuns, BaselineIsAAndTheOnlyReference) {
  LoadedRuns runs = two_runs(1.5);
  runs.runs.push_back(sample_run("c.json", Platform::amd, Framework::mega, 1.2));
  for (const char* name : {"c.json", "c", "mega", "AMD Megatron-LM"}) {
    const Comparison comparison = compare_runs(runs, {.baseline = name});
    EXPECT_EQ(comparison.groups[0].contenders[0].label, "AMD Megatron-LM") << name;
    EXPECT_EQ(comparison.groups[0].pairs.size(), 2u);
  }
  EXPECT_THROW(compare_runs(runs, {.baseline = "nothing"}), Error);
}

TEST(CompareRuns, SortsByAMetric) {
  const Comparison comparison = compare_runs(two_runs(1.5), {.sort = "tokens_per_second"});
  EXPECT_EQ(comparison.groups[0].contenders[0].label, "AMD Primus");
  try {
    compare_runs(two_runs(1.5), {.sort = "tokens_per_secnd"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean tokens_per_second"), std::string::npos) << error.what();
  }
}

// Real pairs that were once headlined: none may have a winner.
TEST(CompareRuns, RealFilesOfDifferentWorkHaveNoWinner) {
  const std::string folder = std::string(TPRIMAT_SHARED_DATA) + "/results";
  SKIP_WITHOUT_EXAMPLE_DATA(folder);
  const Comparison comparison = compare_runs(load_runs({folder}), {});
  ASSERT_EQ(comparison.groups.size(), 2u);
  for (const ModelGroup& group : comparison.groups) {
    ASSERT_EQ(group.pairs.size(), 1u);
    EXPECT_FALSE(group.pairs[0].comparable) << group.model;
    EXPECT_EQ(headline(comparison, group, group.pairs[0]).find("faster"), std::string::npos);
  }
  EXPECT_EQ(comparison_status(comparison), ExitStatus::not_comparable);
}

}  // namespace
}  // namespace tprimat::results

#include "result/result_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "example_data.h"
#include "result/summary.h"
#include "sample_result.h"
#include "stats/mean_estimate.h"
#include "text/json_fields.h"
#include "unit/temporary_folder.h"

namespace tprimat {
namespace {

bool warns_of(const RunResult& result, const std::string& words) {
  for (const std::string& warning : result.warnings)
    if (warning.find(words) != std::string::npos) return true;
  return false;
}

RunResult load_text(const std::string& text, const std::string& file_name) {
  return run_result_from_json(parse_json(text, file_name), file_name);
}

TEST(ResultFile, WhatIsWrittenIsRead) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "train_nvd_native_tiny.json";
  RunResult result = sample_result();
  result.loss_values[5] = std::numeric_limits<double>::quiet_NaN();
  summarise_run(result, {.peak = PeakInfo{"test", 1e12, "by hand"}});
  write_run_result(path, result);
  const RunResult loaded = load_run_result(path);
  EXPECT_EQ(print_json(run_result_to_json(loaded)), print_json(run_result_to_json(result)));
  EXPECT_TRUE(std::isnan(loaded.loss_values[5]));
}

// Its shape had num_experts and experts_per_token, and ffn_hidden_size was an expert's.
TEST(ResultFile, ExpertsOfVersion01AreRead) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "train_nvd_native_tiny.json";
  RunResult result = sample_result();
  result.model_info.shape->experts = Experts{4, 2, result.model_info.shape->ffn_hidden_size};
  result.model_info.num_parameters = count_parameters(*result.model_info.shape).total();
  summarise_run(result, {.peak = PeakInfo{"test", 1e12, "by hand"}});
  Json json = run_result_to_json(result);
  json["model_info"]["shape"].erase("experts");
  json["model_info"]["shape"]["num_experts"] = 4;
  json["model_info"]["shape"]["experts_per_token"] = 2;
  write_file_atomically(path, print_json(json));
  EXPECT_EQ(load_run_result(path).model_info.shape->experts, result.model_info.shape->experts);
}

// A figure that an earlier version of a formula made must not stand beside those of today's.
TEST(ResultFile, FiguresOfAnotherFormulaAreDerivedAgain) {
  RunResult result = sample_result();
  summarise_run(result, {.peak = PeakInfo{"test", 1e12, "by hand"}});
  const double mfu = result.derived.mfu->value;
  RunResult earlier = result;
  earlier.derived.flops_per_token = {{"causal/0", 2 * result.derived.flops_per_token.at("causal/1")}};
  earlier.derived.headline_formula = "causal/0";
  earlier.derived.mfu->value = 2 * mfu;
  earlier.derived.mfu_by_formula = {{"causal/0", 2 * mfu}};
  const RunResult loaded = run_result_from_json(run_result_to_json(earlier), "train_nvd_native_tiny.json");
  EXPECT_EQ(loaded.derived.headline_formula, "causal/1");
  EXPECT_DOUBLE_EQ(loaded.derived.mfu->value, mfu);
  EXPECT_EQ(loaded.derived.flops_per_token, result.derived.flops_per_token);
  EXPECT_EQ(loaded.derived.mfu_by_formula, result.derived.mfu_by_formula);
  EXPECT_EQ(loaded.derived.peak->flops_per_second, 1e12);
  EXPECT_TRUE(warns_of(loaded, "causal/0"));
  const RunResult current = run_result_from_json(run_result_to_json(result), "train_nvd_native_tiny.json");
  EXPECT_FALSE(warns_of(current, "formula"));
}

// A Python callback writes facts and series and leaves the figures to the program.
TEST(ResultFile, APlainResultIsCompleted) {
  const test::TemporaryFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  RunResult result = sample_result();
  result.gpu_info.device_name = "NVIDIA H100 80GB HBM3";
  result.precision = Precision::bf16;
  write_run_result(folder / "plain.json", result);
  const auto completed = complete_plain_result(folder / "plain.json");
  ASSERT_TRUE(completed && completed->statistics);
  EXPECT_EQ(completed->step_times, result.step_times);
  EXPECT_EQ(completed->derived.peak->id, "catalogue:H100-SXM-80GB:bf16");
  EXPECT_EQ(print_json(run_result_to_json(*completed)),
            print_json(run_result_to_json(load_run_result(folder / "plain.json"))));
  write_run_result(folder / "whole.json", *completed);
  write_run_result(folder / "steps.log", result);
  EXPECT_FALSE(complete_plain_result(folder / "whole.json"));  // it has its figures
  EXPECT_FALSE(complete_plain_result(folder / "steps.log"));   // any log may begin so
  EXPECT_FALSE(complete_plain_result(folder / "nowhere.json"));
}

TEST(ResultFile, NameHasOptionalParts) {
  const RunResult result = sample_result();
  EXPECT_EQ(result_file_name(result, {}), "train_nvd_native_tiny.json");
  EXPECT_EQ(result_file_name(result, {"balanced", "wiki", 2}), "train_nvd_native_tiny_balanced_wiki_r2.json");
}

constexpr const char* k_older =
    R"({"platform": "cuda", "gpu_info": {"device_name": "H100", "device_count": "N/A", "software_stack": "nemo"},
  "training_config": {"max_steps": 8, "global_batch_size": 4, "sequence_length": 16, "num_gpus": 2, "parallel_strategy": "balanced"},
  "parallelism_config": {"strategy_name": "unknown"},
  "raw_step_times": [9, 1, 1, 1, 1, 1, 1, 1], "learning_rates": [1, 1, 1, 1, 1, 1, 1]})";

TEST(ResultFile, OlderVariantLoadsAndSaysWhatWasAssumed) {
  const RunResult result = load_text(k_older, "train_nvd_nemo_llama.json");
  EXPECT_EQ(result.platform, Platform::nvd);
  EXPECT_EQ(result.framework, Framework::nemo);
  EXPECT_EQ(result.gpu_info.software_stack, "cuda");
  EXPECT_EQ(result.gpu_info.device_count, 2);
  EXPECT_EQ(result.model_info.name, "llama");
  EXPECT_EQ(result.parallelism_config.strategy_name, "balanced");
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_DOUBLE_EQ(result.derived.tokens_per_second_per_gpu->value, 32);
  EXPECT_TRUE(warns_of(result, "raw_step_times"));
  EXPECT_TRUE(warns_of(result, "device_count"));
  EXPECT_TRUE(warns_of(result, "software_stack"));
  EXPECT_TRUE(warns_of(result, "file name"));
  EXPECT_TRUE(warns_of(result, "7 learning rates for 8 steps"));
}

TEST(ResultFile, OlderFileThatStoppedEarlyIsInvalid) {
  std::string text = k_older;
  text.replace(text.find("\"max_steps\": 8"), 14, "\"max_steps\": 9");
  EXPECT_EQ(load_text(text, "x_llama.json").status, RunStatus::invalid);
}

TEST(ResultFile, AveragesWithoutStepsAreShownWithoutInterval) {
  const RunResult result = load_text(
      R"({"platform": "amd", "performance_metrics": {"total_steps": 10, "total_time_seconds": 20, "tokens_per_second": 800}})",
      "m.json");
  EXPECT_EQ(result.status, RunStatus::complete);
  EXPECT_DOUBLE_EQ(result.derived.tokens_per_second->value, 800);
  EXPECT_FALSE(result.derived.tokens_per_second->low);
  EXPECT_TRUE(warns_of(result, "no step times"));
}

TEST(ResultFile, FigureThatContradictsItsStepsIsWarnedAbout) {
  std::string text = k_older;
  text.insert(1, R"("performance_metrics": {"total_steps": 8, "total_time_seconds": 16, "tokens_per_second": 9999},)");
  EXPECT_TRUE(warns_of(load_text(text, "x_llama.json"), "its step times give"));
}

// 800 tokens/s at 0.5 s per step are 400 tokens per step, not 4 x 16.
TEST(ResultFile, FileThatContradictsItsBatchKeepsItsOwnRateAndIsMarked) {
  std::string text = k_older;
  text.insert(1, R"("performance_metrics": {"total_steps": 8, "total_time_seconds": 16, "avg_step_time_seconds": 0.5,
                 "tokens_per_second": 800, "tokens_per_second_per_gpu": 400},)");
  const RunResult result = load_text(text, "x_llama.json");
  EXPECT_DOUBLE_EQ(result.derived.tokens_per_second_per_gpu->value, 400);
  EXPECT_LE(*result.derived.tokens_per_second_per_gpu->low, 400);  // the spread of its steps
  EXPECT_GE(*result.derived.tokens_per_second_per_gpu->high, 400);
  ASSERT_EQ(result.config_audit.size(), 1u);
  EXPECT_EQ(result.config_audit[0].key, "tokens_per_step");
  EXPECT_EQ(result.config_audit[0].asked, "64.0");
  EXPECT_EQ(result.config_audit[0].effective, "400");
  EXPECT_TRUE(warns_of(result, "contradicts itself"));
}

// What an older file's own averages deny: "figure stated derived", one after the other.
std::string contradictions_of(const std::string& averages, const std::string& more = "") {
  std::string text = k_older;
  text.insert(1, more + R"("performance_metrics": {"total_steps": 8, "total_time_seconds": 16, )" + averages + "},");
  std::string all;
  for (const Contradiction& each : load_text(text, "x_llama.json").contradictions)
    all += each.what + " " + each.stated + " " + each.derived + ";";
  return all;
}

TEST(ResultFile, AnOlderFileIsHeldAgainstItsOwnSteps) {
  EXPECT_EQ(contradictions_of(
                R"("avg_step_time_seconds": 1.0, "tokens_per_second": 64.0, "tokens_per_second_per_gpu": 32.0)"),
            "");
  EXPECT_EQ(contradictions_of(R"("avg_step_time_seconds": 2.0, "tokens_per_second": 32.0)"), "")
      << "with the first step";
  EXPECT_EQ(contradictions_of(R"("avg_step_time_seconds": 0.001)"), "mean step time, s 0.0010000 1.0000;");
  EXPECT_EQ(contradictions_of(R"("avg_step_time_seconds": 1.0, "tokens_per_second": 65.28)"),
            "tokens/s 65.280 64.000;");
  EXPECT_EQ(contradictions_of(R"("tokens_per_second": 9999)"), "tokens/s 9999.0 64.000;");
  EXPECT_EQ(
      contradictions_of(R"("avg_step_time_seconds": 1.0, "tokens_per_second": 64.0, "tokens_per_second_per_gpu": 8.0)"),
      "tokens/s per device 8.0000 32.000;");
}

TEST(ResultFile, AnOlderFilesRoundingIsNoContradiction) {
  std::string text = k_older;
  text.replace(text.find("[9, 1, 1, 1, 1, 1, 1, 1]"), 24,
               "[0.9, 0.1437, 0.1437, 0.1437, 0.1437, 0.1437, 0.1437, 0.1437]");
  text.insert(1, R"("performance_metrics": {"total_steps": 8, "total_time_seconds": 2, "avg_step_time_seconds": 0.14,
                 "tokens_per_second": 445.4},)");
  EXPECT_TRUE(load_text(text, "x_llama.json").contradictions.empty());
}

TEST(ResultFile, AMeanOfAnOlderFilesRatesIsNoContradiction) {
  std::string text = k_older;
  text.replace(text.find("[9, 1, 1, 1, 1, 1, 1, 1]"), 24, "[1, 0.9, 1.1, 0.9, 1.1, 0.9, 1.1, 1]");
  text.insert(1, R"("performance_metrics": {"total_steps": 8, "total_time_seconds": 8, "avg_step_time_seconds": 1.0,
                 "tokens_per_second": 64.55},)");
  EXPECT_TRUE(load_text(text, "x_llama.json").contradictions.empty());
}

TEST(ResultFile, OnlyAGrossContradictionOfAnOlderFileDoubtsItsSpeed) {
  const auto kind = [](const char* rate) {
    std::string text = k_older;
    text.insert(1, R"("performance_metrics": {"total_steps": 8, "total_time_seconds": 16, "tokens_per_second": )" +
                       std::string(rate) + "},");
    return load_text(text, "x_llama.json").contradictions.at(0).kind;
  };
  EXPECT_EQ(kind("66.5"), Contradiction::Kind::figure);
  EXPECT_EQ(kind("80.5"), Contradiction::Kind::rate);
}

TEST(ResultFile, AnOlderFilesLayoutIsHeldAgainstItsDevices) {
  std::string text = k_older;
  text.replace(text.find("\"strategy_name\""), 0,
               R"("tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "data_parallel_size": 4, )");
  const RunResult result = load_text(text, "x_llama.json");
  ASSERT_EQ(result.contradictions.size(), 1u);
  EXPECT_EQ(result.contradictions[0].kind, Contradiction::Kind::layout);
  EXPECT_EQ(result.contradictions[0].derived, "16");
}

TEST(ResultFile, AveragesWithoutStepsAreHeldAgainstTheBatchToo) {
  const RunResult result = load_text(
      R"({"platform": "amd", "training_config": {"global_batch_size": 4, "sequence_length": 16, "num_gpus": 2},
          "performance_metrics": {"total_steps": 10, "total_time_seconds": 20, "avg_step_time_seconds": 0.5,
                                  "tokens_per_second": 800}})",
      "m.json");
  ASSERT_EQ(result.config_audit.size(), 1u);
  EXPECT_EQ(result.config_audit[0].effective, "400");
}

TEST(ResultFile, WhatIsNoResultIsRefusedWithTheFileNamed) {
  for (const char* text :
       {"[]", "3", "{}", R"({"platform": "nvd"})", R"({"step_times": [1]})",
        R"({"platform": "nvd", "step_times": "fast"})", R"({"platform": "warp", "step_times": [1]})"}) {
    try {
      load_text(text, "odd.json");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("odd.json"), std::string::npos) << error.what();
    }
  }
}

TEST(ResultFile, OwnFileWithoutItsFactsIsRefused) {
  for (const char* key : {"platform", "status"}) {
    Json json = run_result_to_json(sample_result());
    json.erase(key);
    EXPECT_THROW(run_result_from_json(json, "cut.json"), Error) << key;
  }
}

TEST(ResultFile, FiguresThatTheStepsDenyAreDerivedAgain) {
  RunResult honest = sample_result();
  summarise_run(honest, {});
  const auto load_with = [&](const char* section, const char* key, const Json& value) {
    Json json = run_result_to_json(honest);
    json[section][key] = value;
    const RunResult result = run_result_from_json(json, "edited.json");
    EXPECT_DOUBLE_EQ(result.statistics->mean, honest.statistics->mean) << key;
    EXPECT_DOUBLE_EQ(result.derived.tokens_per_second->value, honest.derived.tokens_per_second->value) << key;
    return warns_of(result, "do not follow from its step times");
  };
  const Json fast{{"value", 1e9}, {"low", 1e9}, {"high", 1e9}};
  EXPECT_TRUE(load_with("derived", "tokens_per_second", fast));
  EXPECT_TRUE(load_with("derived", "tokens_per_second_per_gpu", fast));
  EXPECT_TRUE(load_with("statistics", "mean", 1e-3));
  EXPECT_TRUE(load_with("statistics", "mean", nullptr));
  EXPECT_FALSE(load_with("model_info", "full_name", "Sample"));
}

TEST(ResultFile, APrintedSettingSaysNothingOfTheFigures) {
  RunResult result = sample_result();
  summarise_run(result, {});
  result.effective_config.emplace()["num_layers"] = "999";
  const RunResult loaded = run_result_from_json(run_result_to_json(result), "edited.json");
  ASSERT_EQ(loaded.contradictions.size(), 1u);
  EXPECT_FALSE(warns_of(loaded, "do not follow from its step times"));
}

TEST(ResultFile, NewerSchemaIsReadWithAWarning) {
  Json json = run_result_to_json(sample_result());
  json["schema_version"] = 99;
  EXPECT_TRUE(warns_of(run_result_from_json(json, "x.json"), "schema version 99"));
}

struct RealFile {
  const char* name;
  const char* model;
  std::optional<Framework> framework;
  double tokens_per_second_per_gpu;
  bool contradicts_itself = false;  // its rate belongs to 8192 tokens per sequence, it states 2048
};
class RealFiles : public ::testing::TestWithParam<RealFile> {};
TEST_P(RealFiles, Load) {
  const std::filesystem::path path = std::filesystem::path(TPRIMAT_SHARED_DATA) / "results" / GetParam().name;
  SKIP_WITHOUT_EXAMPLE_DATA(path);
  const RunResult result = load_run_result(path);
  EXPECT_EQ(result.model_info.name, GetParam().model);
  EXPECT_EQ(result.framework, GetParam().framework);
  EXPECT_EQ(result.status, RunStatus::complete) << result.status_reason.value_or("");
  EXPECT_NEAR(result.derived.tokens_per_second_per_gpu->value / GetParam().tokens_per_second_per_gpu, 1, 0.01);
  EXPECT_TRUE(result.derived.tokens_per_second_per_gpu->low);
  EXPECT_EQ(result.config_audit.size(), GetParam().contradicts_itself ? 1u : 0u);
  EXPECT_FALSE(result.derived.mfu);
  EXPECT_FALSE(result.warnings.empty());
}
INSTANTIATE_TEST_SUITE_P(Shared, RealFiles,
                         ::testing::Values(RealFile{"benchmark_cuda_llama.json", "llama", {}, 5114.8},
                                           RealFile{"benchmark_rocm_llama.json", "llama", Framework::prim, 13425.1,
                                                    true},
                                           RealFile{"train_nvd_nemo_qwen.json", "qwen", Framework::nemo, 4203.3},
                                           RealFile{"train_amd_prim_qwen.json", "qwen", Framework::prim, 6519.8}));

// A file of another version, or of another program, may hold words that this one does not know.
TEST(ResultFile, UnknownWordsAreReadAsOther) {
  RunResult result = sample_result();
  result.steps.emplace().labelled = {{2, StepLabel::checkpoint}};
  result.events = std::vector<RunEvent>{{EventKind::nan, {}, 3, {}, {}, {}, "the loss is not a number"}};
  result.event_counts = {{EventKind::nan, 1}};
  result.memory_by_rank = std::vector<RankMemoryEntry>{{0, MemoryKind::reserved, 71.25}};
  result.source.step_time = TimeSource::printed;
  summarise_run(result, {});
  Json json = run_result_to_json(result);
  EXPECT_EQ(json["event_counts"], (Json{{"nan", 1}}));
  json["steps"]["labelled"][0]["label"] = "profiled";
  json["events"][0]["kind"] = "spike";
  json["event_counts"] = Json{{"spike", 1}};
  json["memory_by_rank"][0]["kind"] = "shared";
  json["source"]["step_time"] = "guessed";
  json["warmup"]["method"] = "two_segments";
  for (const RunResult& read : {read_run_result(print_json(json), "a.json"), run_result_from_json(json, "a.json")}) {
    EXPECT_EQ(read.steps->labelled[0].label, StepLabel::other);
    EXPECT_EQ(read.events->at(0).kind, EventKind::other);
    EXPECT_EQ(read.event_counts->at(EventKind::other), 1);
    EXPECT_EQ(read.memory_by_rank->at(0).kind, MemoryKind::other);
    EXPECT_EQ(read.source.step_time, TimeSource::none);
    EXPECT_EQ(read.warmup.method, WarmupMethod::other);
  }
}

TEST(ResultFile, IntervalsOfAnotherMethodAreMadeAgain) {
  RunResult result = sample_result();
  for (size_t i = 1; i < result.step_times.size(); ++i) result.step_times[i] = 1.0 + 0.01 * static_cast<double>(i % 4);
  summarise_run(result, {});
  ASSERT_TRUE(result.statistics->ci95_low);
  EXPECT_EQ(result.statistics->interval_method, k_interval_method);
  const double low = *result.statistics->ci95_low;
  const auto read = [&](const std::optional<std::string>& method, double stored_low) {
    RunResult stored = result;
    stored.statistics->interval_method = method;
    stored.statistics->ci95_low = stored_low;
    return read_run_result(print_json(run_result_to_json(stored)), "a.json");
  };
  for (const RunResult& again : {read("bootstrap/3", 0.5), read(std::nullopt, 0.5)}) {
    EXPECT_DOUBLE_EQ(*again.statistics->ci95_low, low);
    EXPECT_EQ(again.statistics->interval_method, k_interval_method);
    ASSERT_EQ(again.warnings.size(), 1u);
    EXPECT_NE(again.warnings[0].find("recomputed by long_run_variance_t/1"), std::string::npos) << again.warnings[0];
  }
  EXPECT_NE(read("bootstrap/3", low).warnings[0].find("method bootstrap/3"), std::string::npos);
  EXPECT_TRUE(read(std::nullopt, low).warnings.empty()) << "an older file with today's interval";
  EXPECT_TRUE(read(std::string(k_interval_method), low).warnings.empty());
}

}  // namespace
}  // namespace tprimat

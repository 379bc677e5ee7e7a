// Forgeries that one file alone does not show, and what honest files may differ in.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "archive/verify.h"
#include "base/files.h"
#include "unit/archive/sealed_run.h"

namespace tprimat::results {
namespace {

// The files of a run, to be forged one after the other.
class ForgeryTest : public ::testing::Test {
 protected:
  // With everything that follows from the change made again.
  void forge_result(const std::function<void(RunResult&)>& change) {
    RunResult run = run_result_from_json(parse_json(files_[k_run_result], ""), "");
    change(run);
    summarise_run(run, stored_options(run));
    files_[k_run_result] = print_json(run_result_to_json(run));
  }
  void forge_spec(const std::function<void(TrainSpec&)>& change) {
    TrainSpec spec = train_spec_from_json(parse_json(files_[k_run_spec], ""), "");
    change(spec);
    files_[k_run_spec] = print_json(train_spec_to_json(spec));
  }
  void forge_hash() {
    const Json spec = parse_json(files_[k_run_spec], "");
    const LaunchFacts launch = launch_facts_from_json(parse_json(files_[k_run_launch], ""), "");
    forge_result([&](RunResult& run) { run.config_hash = hash_config_of_file(spec, launch); });
  }
  void forge_steps(const std::function<void(StepRecord&)>& change) {
    std::istringstream stream(files_[k_run_steps]);
    std::string lines;
    for (std::string line; std::getline(stream, line);) {
      StepRecord record = parse_step_record(line).value();
      change(record);
      lines += step_record_to_line(record) + "\n";
    }
    files_[k_run_steps] = lines;
  }
  void replace_in_log(const std::string& from, const std::string& to) {
    std::string& log = files_[k_run_log];
    for (size_t at = log.find(from); at != std::string::npos; at = log.find(from, at + to.size()))
      log.replace(at, from.size(), to);
  }

  void expect_broken(const std::string& what, const std::string& witness) {
    const Verification found = seal_and_verify_in_memory(files_);
    EXPECT_TRUE(std::any_of(found.broken.begin(), found.broken.end(),
                            [&](const Broken& each) { return each.what == what && each.witness == witness; }))
        << what << ", " << witness << ":\n"
        << list_all(found);
  }
  void expect_holds() {
    const Verification found = seal_and_verify_in_memory(files_);
    EXPECT_TRUE(found.broken.empty()) << list_all(found);
  }

  Files files_ = sealed_run();
};

TEST_F(ForgeryTest, ABatchThatWasDoubled) {
  const auto double_batch = [](auto& config) { config.global_batch_size = 32; };
  forge_result([&](RunResult& run) { double_batch(run.training_config); });
  expect_broken("training_config.global_batch_size", k_run_spec);
  forge_spec(double_batch);
  forge_result([](RunResult& run) { run.parallelism_config.gradient_accumulation_steps = 8; });
  expect_broken("config_hash", std::string(k_run_spec) + " with " + k_run_launch);
  forge_hash();
  expect_broken("step 1, tokens", k_run_steps);
  forge_steps([](StepRecord& record) { *record.tokens *= 2; });
  expect_broken("step 2, global batch size", k_run_log);
  files_.erase(k_run_log);
  expect_holds();  // whoever forges every witness is not found out: docs/archive.md
}

TEST_F(ForgeryTest, APrecisionThatWasRelabelled) {
  forge_result([](RunResult& run) { run.precision = Precision::fp8; });
  expect_broken("precision", k_run_spec);
  forge_spec([](TrainSpec& spec) { spec.precision = Precision::fp8; });
  forge_hash();
  expect_broken("precision", k_run_log);
}

TEST_F(ForgeryTest, StepTimesThatWereHalved) {
  forge_result([](RunResult& run) {
    for (double& seconds : run.step_times) seconds /= 2;
  });
  expect_broken("step 3, time in s", k_run_steps);
  forge_steps([](StepRecord& record) { record.time_seconds /= 2; });
  expect_broken("step times against time stamps", k_run_steps);
  forge_steps([](StepRecord& record) { record.unix_time.reset(); });
  forge_result([](RunResult& run) { run.reported->unix_time.reset(); });
  expect_broken("step 3, time in s", k_run_log);
  files_.erase(k_run_log);
  expect_holds();
}

TEST_F(ForgeryTest, StepTimesThatWereDoubled) {
  forge_result([](RunResult& run) {
    for (double& seconds : run.step_times) seconds *= 2;
  });
  forge_steps([](StepRecord& record) { record.time_seconds *= 2; });
  expect_broken("step times against time stamps", k_run_steps);
}

TEST_F(ForgeryTest, AWarmupThatNobodyAskedFor) {
  forge_result([](RunResult& run) { run.warmup.steps_excluded = 20; });
  expect_broken("warmup", k_run_launch);
}

TEST_F(ForgeryTest, TimesOfALogAgainstItsTimeStamps) {
  files_ = sealed_extraction();
  expect_holds();
  std::string& log = files_[k_other_log];
  for (size_t at = log.find("(ms): 100"); at != std::string::npos; at = log.find("(ms): 100", at))
    log.replace(at, 9, "(ms): 50");
  files_[k_other_result] = print_json(run_result_to_json(extract_in_memory(log)));
  expect_broken("step times against time stamps", k_other_log);
}

TEST_F(ForgeryTest, WhatTheAuditNamesIsNoForgery) {
  replace_in_log("precision fp16", "precision bf16");
  expect_broken("precision", k_run_log);
  forge_result([](RunResult& run) { run.config_audit.push_back({"precision", "fp16", "bf16"}); });
  expect_holds();
  forge_result([](RunResult& run) { run.config_audit.back().effective = "fp32"; });
  expect_broken("config_audit.precision", k_run_log);
}

TEST_F(ForgeryTest, ADisagreementNamesBothFiles) {
  forge_result([](RunResult& run) { run.training_config.seed = 8; });
  const Verification found = seal_and_verify_in_memory(files_);
  ASSERT_EQ(found.broken.size(), 1u) << list_all(found);
  EXPECT_EQ(found.broken[0].file, k_run_result);
  EXPECT_EQ(found.broken[0].stated, "8");
  EXPECT_EQ(found.broken[0].derived, "7");
  EXPECT_EQ(found.broken[0].witness, k_run_spec);
}

// Older suites wrote no launch.json.
TEST_F(ForgeryTest, AHashThatCannotBeMadeAgainIsNoted) {
  files_.erase(k_run_launch);
  const Verification found = seal_and_verify_in_memory(files_);
  EXPECT_TRUE(found.broken.empty()) << list_all(found);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("config_hash was not checked: there is no launch.json"), std::string::npos)
      << found.notes[0];
}

TEST_F(ForgeryTest, AHashOfHiddenNamesIsNoted) {
  forge_spec([](TrainSpec& spec) { spec.data.dataset = "~/data/corpus"; });
  forge_result([](RunResult& run) { run.dataset = "~/data/corpus"; });
  const Verification found = seal_and_verify_in_memory(files_);
  EXPECT_TRUE(found.broken.empty()) << list_all(found);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("names are redacted"), std::string::npos) << found.notes[0];
}

TEST_F(ForgeryTest, AResultThatLacksSectionsIsStillOne) {
  Json json = parse_json(files_[k_run_result], "");
  json["statistics"]["p95"] = 77.0;
  for (const char* key : {"gpu_info", "training_config"}) {
    Files files = files_;
    Json without = json;
    without.erase(key);
    files[k_run_result] = print_json(without);
    EXPECT_EQ(seal_and_verify_in_memory(files).results, 1) << key;
    EXPECT_FALSE(seal_and_verify_in_memory(files).broken.empty()) << key;
  }
  files_[k_run_result] = print_json(json);
  files_["output/result.txt"] = files_[k_run_result];
  EXPECT_EQ(seal_and_verify_in_memory(files_).results, 2);
  const Verification listed = seal_and_verify_in_memory(
      {{"output/all.json", print_json(Json::array({json}))}, {"output/more.json", print_json({{"results", {json}}})}});
  EXPECT_EQ(listed.results, 0);
  ASSERT_EQ(listed.notes.size(), 2u);
  EXPECT_NE(listed.notes[0].find("holds a list of results"), std::string::npos) << listed.notes[0];
}

TEST_F(ForgeryTest, AHashThatWasTakenOutHidesNoFact) {
  forge_result([](RunResult& run) {
    run.config_hash.reset();
    run.gpu_info.software_stack = "rocm";
  });
  expect_broken("gpu_info.software_stack", "");
  const Verification found = seal_and_verify_in_memory(files_);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("lacks config_hash"), std::string::npos) << found.notes[0];
}

TEST_F(ForgeryTest, AMissingRequestIsNoted) {
  files_.erase(k_run_spec), files_.erase(k_run_launch);
  const Verification found = seal_and_verify_in_memory(files_);
  EXPECT_TRUE(found.broken.empty()) << list_all(found);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("its settings were not checked"), std::string::npos) << found.notes[0];
}

TEST_F(ForgeryTest, ALogOfARenamedOrCopiedFolderIsFound) {
  Files moved;
  for (const char* folder : {"a", "b"})
    for (const auto& [name, content] : files_) moved[folder + name.substr(name.find('/'))] = content;
  Verification found = seal_and_verify_in_memory(moved);
  EXPECT_EQ(found.logs, 2);
  EXPECT_TRUE(found.broken.empty()) << list_all(found);
  EXPECT_TRUE(found.notes.empty()) << found.notes.front();
  std::string& log = moved["b/training_native_tiny.log"];
  log.replace(log.find("precision fp16"), 14, "precision bf16");
  found = seal_and_verify_in_memory(moved);
  ASSERT_FALSE(found.broken.empty());
  for (const Broken& each : found.broken) EXPECT_EQ(each.file, "b/train_nvd_native_tiny.json");
}

TEST_F(ForgeryTest, ALogThatIsNotNamedIsNoted) {
  forge_result([](RunResult& run) { run.source.log = ""; });
  const Verification found = seal_and_verify_in_memory(files_);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("names no log"), std::string::npos) << found.notes[0];
}

TEST_F(ForgeryTest, ALogOfAnotherRunIsNotTaken) {
  Files files = sealed_extraction();
  files["other/b.json"] = files[k_other_result];
  files["other/c.json"] = std::regex_replace(files[k_other_result], std::regex("/x/logs/a.log"), "/x/exp/a.log");
  const Verification found = seal_and_verify_in_memory(files);
  EXPECT_EQ(found.logs, 1);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("its log /x/exp/a.log is not in the archive"), std::string::npos) << found.notes[0];
}

TEST_F(ForgeryTest, DerivedFiguresComeLast) {
  forge_result([](RunResult& run) { run.step_times[4] *= 1.5; });
  Json json = parse_json(files_[k_run_result], "");
  json["statistics"]["mean"] = 7.0;
  files_[k_run_result] = print_json(json);
  const auto broken = seal_and_verify_in_memory(files_).broken;
  ASSERT_GT(broken.size(), 1u);
  EXPECT_FALSE(is_derived_figure(broken.front()));
  EXPECT_TRUE(is_derived_figure(broken.back()));
}

TEST(ListOfFacts, StandsInTheDocumentation) {
  const std::string text = read_file(std::string(TPRIMAT_SOURCE_DIR) + "/docs/archive.md");
  EXPECT_NE(text.find(render_facts(list_facts())), std::string::npos) << render_facts(list_facts());
}

}  // namespace
}  // namespace tprimat::results

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "extract/course.h"
#include "extract/logged_figures.h"
#include "extract/to_result.h"
#include "stats/mean_estimate.h"
#include "unit/archive/archive_folder.h"

namespace tprimat::results {
namespace {

const Broken* find_broken(const std::vector<Broken>& broken, const std::string& what) {
  const auto found = std::find_if(broken.begin(), broken.end(), [&](const Broken& each) { return each.what == what; });
  return found == broken.end() ? nullptr : &*found;
}

std::string list_broken(const Verification& found) {
  std::string text;
  for (const Broken& each : found.broken)
    text += each.file + ": " + each.what + ": stated " + each.stated + ", derived " + each.derived + "\n";
  return text;
}

using VerifyTest = ArchiveTest;

TEST_F(VerifyTest, EverySeriesIsHeldAgainstItsRecords) {
  for (const auto& [series, what, recorded] :
       {std::tuple{"loss_values", "step 13, loss", 7.8}, std::tuple{"learning_rates", "step 13, learning rate", 1e-4},
        std::tuple{"grad_norms", "step 13, gradient norm", 1.88},
        std::tuple{"memory_values", "step 13, memory in GB", 40.0}}) {
    write_run();
    edit_result([&](Json& result) { result[series][12] = 0.5; });
    const auto broken = seal_and_verify();
    const Broken* found = find_broken(broken, what);
    ASSERT_NE(found, nullptr) << what;
    EXPECT_EQ(found->stated, "0.5");
    EXPECT_NEAR(std::stod(found->derived), recorded, 1e-9);
  }
}

TEST_F(VerifyTest, ALossWithoutARecordDoesNotHold) {
  write_run();
  std::string lines;
  for (const StepRecord& each : read_step_records(output_ / "runs/train_nvd_mega_llama/steps.jsonl")) {
    StepRecord without = each;
    if (each.step == 30) without.loss.reset();
    lines += step_record_to_line(without) + "\n";
  }
  write_file_atomically(output_ / "runs/train_nvd_mega_llama/steps.jsonl", lines);
  const auto broken = seal_and_verify();
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0].what, "step 30, loss");
  EXPECT_EQ(broken[0].derived, "nothing");
}

TEST_F(VerifyTest, ALossBeyondTheLastStepDoesNotHold) {
  write_run();
  edit_result([](Json& result) { result["loss_values"].push_back(0.1); });
  const auto broken = seal_and_verify();
  const Broken* found = find_broken(broken, "step 31, loss");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->stated, "0.1");
}

TEST_F(VerifyTest, ANaNIsNotHiddenBehindANumber) {
  write_run();
  const fs::path records = output_ / "runs/train_nvd_mega_llama/steps.jsonl";
  StepRecord last;
  last.step = 30;
  last.time_seconds = 1.0 + 0.01 * (29 % 7);
  last.loss = std::numeric_limits<double>::quiet_NaN();
  last.learning_rate = 1e-4, last.grad_norm = 2.0 - 0.01 * 29, last.memory_allocated_gb = 40.0 + 0.1 * (29 % 3);
  write_file_atomically(records, read_file(records) + step_record_to_line(last) + "\n");
  const auto broken = seal_and_verify();
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0].what, "step 30, loss");
  EXPECT_EQ(broken[0].derived, "no number");
}

TEST_F(VerifyTest, ALossThatTheResultLeavesOutIsNamed) {
  write_run();
  edit_result([](Json& result) { result["loss_values"][29] = nullptr; });
  const auto broken = seal_and_verify();
  const Broken* found = find_broken(broken, "step 30, loss");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->stated, "nothing");
}

TEST_F(VerifyTest, AFinalLossOfAnotherToolIsDerived) {
  write_run();
  edit_result([](Json& result) { result["final_loss"] = 0.5, result["validation_loss"] = 1.5; });
  const auto broken = seal_and_verify();
  ASSERT_EQ(broken.size(), 2u);
  EXPECT_EQ(broken[0].what, "final_loss");
  EXPECT_EQ(broken[0].stated, "0.5");
  EXPECT_NE(broken[0].derived, "nothing");
  EXPECT_EQ(broken[1].what, "validation_loss");
  EXPECT_EQ(broken[1].derived, "nothing");
}

TEST_F(VerifyTest, ListsAndTheWarmupAreFiguresToo) {
  write_run();
  edit_result([](Json& result) {
    result["statistics"]["outliers"] = {7};
    result["warmup"]["steps_excluded"] = 4;
  });
  const auto broken = seal_and_verify();
  EXPECT_NE(find_broken(broken, "statistics.outliers"), nullptr);
  EXPECT_NE(find_broken(broken, "warmup.steps_excluded"), nullptr);
}

TEST_F(VerifyTest, IntervalsOfAnotherMethodAreNotHeldAgainstOurs) {
  write_run();
  edit_result([](Json& result) {
    result["statistics"]["interval_method"] = "bootstrap/3";
    result["statistics"]["ci95_low"] = 0.1;
  });
  seal();
  const Verification found = verify_archive(folder_ / "a.tar.zst");
  EXPECT_TRUE(found.broken.empty()) << list_broken(found);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("bootstrap/3"), std::string::npos);
}

TEST_F(VerifyTest, RecordsAreFoundByThePathInTheResult) {
  write_run();
  edit_result([](Json& result) { result["source"]["steps_file"] = "/elsewhere/output/runs/one/steps.jsonl"; });
  fs::rename(output_ / "runs/train_nvd_mega_llama", output_ / "runs/one");
  seal();
  const Verification found = verify_archive(folder_ / "a.tar.zst");
  EXPECT_EQ(found.steps, 30);
  EXPECT_TRUE(found.broken.empty()) << list_broken(found);
}

TEST_F(VerifyTest, AResultWithEscapedKeysIsChecked) {
  write_run();
  edit_result([](Json& result) { result["statistics"]["mean"] = 0.5; });
  const fs::path path = output_ / "train_nvd_mega_llama.json";
  std::string text = read_file(path);
  text.replace(text.find("gpu_info"), 1, "\\u0067");
  write_file_atomically(path, text);
  EXPECT_NE(find_broken(seal_and_verify(), "statistics.mean"), nullptr);
}

TEST_F(VerifyTest, WithoutRecordsANoteSaysWhatIsTakenAsItIs) {
  write_run();
  fs::remove_all(output_ / "runs");
  seal();
  const Verification found = verify_archive(folder_ / "a.tar.zst");
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("step times and losses were not checked"), std::string::npos);
}

const fs::path k_fixtures = fs::path(TPRIMAT_SOURCE_DIR) / "tests/unit/extract/fixtures";

class LogTest : public ArchiveTest {
 protected:
  // A log as somebody extracts it where it lies, and its result.
  void extract_to(const fs::path& result_path, const std::string& name, const std::string& text) {
    write_file_atomically(output_ / "logs" / name, text);
    const RunResult result = logs::make_result(logs::read_log_text(text, {}), "/home/jane/logs/" + name, {});
    write_run_result(output_ / result_path, result, Survives::kill);
  }

  Verification verify_sealed() {
    seal_files({{output_}, folder_ / "a.tar.zst", {{}, "jane", "/home/jane", {}}, "", ""});
    return verify_archive(folder_ / "a.tar.zst");
  }

  static std::string megatron_log(const std::string& last_loss = "2.125000E+00") {
    std::string text = "loading /home/jane/data with hf_abcdefghijklmnopqrstuvwxyz012345 (user jane)\n";
    for (int i = 1; i <= 12; ++i)
      text += fmt::format(
          " iteration {:8}/      12 | consumed samples: {:12} | elapsed time per iteration (ms): {:.1f} | throughput "
          "per "
          "GPU (TFLOP/s/GPU): 401.5 | learning rate: 1.000000E-04 | global batch size: 64 | lm loss: {} | loss scale: "
          "1.0 | grad norm: 1.250 |\n",
          i, i * 64, 500.0 + i % 3, i == 12 ? last_loss : "3.125000E+00");
    return text;
  }
};

TEST_F(LogTest, EveryLogIsExtractedAgainAndHolds) {
  int64_t logs = 0;
  for (const auto& entry : fs::recursive_directory_iterator(k_fixtures)) {
    if (entry.path().extension() != ".log" && entry.path().extension() != ".txt") continue;
    const std::string name = entry.path().parent_path().filename().string() + "_" + entry.path().filename().string();
    const std::string text = read_file(entry.path());
    if (logs::read_log_text(text, {}).log.steps.empty()) continue;
    extract_to(name + ".json", name, text);
    ++logs;
  }
  ASSERT_GT(logs, 40);
  const Verification found = verify_sealed();
  std::string notes;
  for (const std::string& note : found.notes) notes += note + "\n";
  EXPECT_EQ(found.logs, logs) << notes;
  EXPECT_TRUE(found.broken.empty()) << list_broken(found);
}

TEST_F(LogTest, ALogThatWasChangedAndSealedAgainIsSpokenOf) {
  extract_to("a.json", "a.log", megatron_log());
  Verification found = verify_sealed();
  EXPECT_TRUE(found.broken.empty()) << list_broken(found);
  EXPECT_EQ(found.logs, 1);
  EXPECT_EQ(found.steps, 12);

  write_file_atomically(output_ / "logs/a.log", megatron_log("1.125000E+00"));
  found = verify_sealed();
  const Broken* loss = find_broken(found.broken, "step 12, loss");
  ASSERT_NE(loss, nullptr) << list_broken(found);
  EXPECT_EQ(loss->stated, "2.125");
  EXPECT_EQ(loss->derived, "1.125");
}

TEST_F(LogTest, AResultThatWasChangedWithAllThatFollowsFromItIsSpokenOf) {
  extract_to("a.json", "a.log", megatron_log());
  RunResult result = load_run_result(output_ / "a.json");
  for (double& seconds : result.step_times) seconds *= 0.5;
  result.training_config.global_batch_size = 128;
  for (double& tflops : *result.reported->tflops_per_gpu) tflops *= 2;
  result.memory_metrics.peak_memory_reserved_gb = 12.0;
  summarise_run(result, stored_options(result));
  write_run_result(output_ / "a.json", result, Survives::kill);
  const Verification found = verify_sealed();
  for (const char* what : {"step 2, time in s", "training_config.global_batch_size", "statistics.mean",
                           "reported.tflops_per_gpu[3]", "memory_metrics.peak_memory_reserved_gb"})
    EXPECT_NE(find_broken(found.broken, what), nullptr) << what << "\n" << list_broken(found);
}

TEST_F(LogTest, WhatTheUserAddedIsNotHeldAgainstTheLog) {
  const std::string text = megatron_log();
  write_file_atomically(output_ / "logs/a.log", text);
  const logs::KnownFacts known{.platform = Platform::nvd,
                               .model = "llama",
                               .device = "NVIDIA H100 80GB HBM3",
                               .devices = 8,
                               .global_batch_size = {},
                               .sequence_length = 4096,
                               .precision = Precision::bf16,
                               .fixed_warmup_steps = 4};
  write_run_result(output_ / "a.json", logs::make_result(logs::read_log_text(text, {}), "logs/a.log", known),
                   Survives::kill);
  const Verification found = verify_sealed();
  EXPECT_EQ(found.logs, 1);
  EXPECT_TRUE(found.broken.empty()) << list_broken(found);
}

TEST_F(LogTest, SettingsThatWereChangedAreSpokenOf) {
  const std::string settings =
      "------------------------ arguments ------------------------\n"
      "  bf16 ............................................ True\n"
      "  optimizer ....................................... adam\n"
      "  recompute_granularity ........................... full\n"
      "  sequence_parallel ............................... True\n"
      "  tensor_model_parallel_size ...................... 2\n"
      "-------------------- end of arguments ---------------------\n";
  extract_to("a.json", "a.log", settings + megatron_log());
  const Json honest = parse_json(read_file(output_ / "a.json"), "");
  EXPECT_TRUE(verify_sealed().broken.empty());
  Json doctored = honest;
  doctored["framework"] = "nemo";
  doctored["precision"] = "fp8";
  doctored["training_config"]["optimizer"] = "muon";
  doctored["training_config"]["recompute"] = "none";
  doctored["parallelism_config"]["sequence_parallel"] = false;
  doctored["effective_config"]["recompute_granularity"] = "None";
  doctored["effective_config"]["never_printed"] = "True";
  write_file_atomically(output_ / "a.json", print_json(doctored));
  const Verification found = verify_sealed();
  for (const char* what : {"framework", "precision", "training_config.optimizer", "training_config.recompute",
                           "parallelism_config.sequence_parallel", "effective_config.recompute_granularity",
                           "effective_config.never_printed"})
    EXPECT_NE(find_broken(found.broken, what), nullptr) << what << "\n" << list_broken(found);
  EXPECT_EQ(found.broken.size(), 7u) << list_broken(found);
}

TEST_F(LogTest, ALogThatSeveralResultsNameIsReadOnce) {
  extract_to("a.json", "a.log", megatron_log());
  extract_to("b.json", "a.log", megatron_log());
  RunResult result = load_run_result(output_ / "b.json");
  result.loss_values[11] = 0.5;
  write_run_result(output_ / "b.json", result, Survives::kill);
  const Verification found = verify_sealed();
  EXPECT_EQ(found.logs, 1);
  EXPECT_EQ(found.steps, 24);
  ASSERT_EQ(found.broken.size(), 1u) << list_broken(found);
  EXPECT_EQ(found.broken[0].file, "output/b.json");
}

TEST_F(LogTest, ALogThatASuiteFollowedIsReadAgain) {
  const std::string text = megatron_log();
  write_file_atomically(output_ / "runs/x/x.log", text);
  RunResult result;
  result.platform = Platform::nvd;
  result.framework = Framework::mega;
  result.training_config.max_steps = 12;
  result.source.log = "/data/output/runs/x/x.log";
  result.source.format = "log";
  for (const StepRecord& record : logs::make_step_records(logs::read_log_text(text, {}))) {
    result.step_times.push_back(record.time_seconds);
    result.loss_values.push_back(record.loss.value());
    result.grad_norms.push_back(record.grad_norm.value());
  }
  summarise_run(result, {});
  write_run_result(output_ / "x.json", result, Survives::kill);
  Verification found = verify_sealed();
  EXPECT_EQ(found.logs, 1);
  // The log tells learning rates, which this result leaves out.
  EXPECT_EQ(found.broken.size(), 12u) << list_broken(found);
  result.learning_rates.assign(12, 1e-4);
  write_run_result(output_ / "x.json", result, Survives::kill);
  found = verify_sealed();
  EXPECT_TRUE(found.broken.empty()) << list_broken(found);
  logs::add_logged_figures(result, logs::read_log_text(text, {}));
  summarise_run(result, {});
  write_run_result(output_ / "x.json", result, Survives::kill);
  found = verify_sealed();
  EXPECT_TRUE(found.broken.empty()) << list_broken(found);
  RunResult forged = result;
  forged.reported->tflops_per_gpu->at(7) *= 1.5;
  write_run_result(output_ / "x.json", forged, Survives::kill);
  EXPECT_NE(find_broken(verify_sealed().broken, "reported.tflops_per_gpu[7]"), nullptr);
  write_run_result(output_ / "x.json", result, Survives::kill);
  write_file_atomically(output_ / "runs/x/x.log", megatron_log("0.5"));
  EXPECT_NE(find_broken(verify_sealed().broken, "step 12, loss"), nullptr);
}

TEST_F(LogTest, ALogThatIsNotThereIsNoted) {
  extract_to("a.json", "a.log", megatron_log());
  fs::remove_all(output_ / "logs");
  const Verification found = verify_sealed();
  EXPECT_TRUE(found.broken.empty());
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("its log ~/logs/a.log is not in the archive"), std::string::npos) << found.notes[0];
}

}  // namespace
}  // namespace tprimat::results

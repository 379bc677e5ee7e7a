// A log that holds several runs: a result has the facts of the attempt whose steps count, and no others.
#include "extract/attempts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "attempt_logs.h"
#include "base/error.h"
#include "base/files.h"
#include "extract/dialects.h"
#include "extract/log_builder.h"
#include "extract/scan_text.h"
#include "extract/to_result.h"
#include "result/result_file.h"
#include "text/json.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

namespace fs = std::filesystem;
const fs::path k_repeated_fixtures = fs::path(TPRIMAT_SOURCE_DIR) / "tests/unit/extract/fixtures";

TEST(Attempts, ResultHasTheSettingsOfItsSteps) {
  for (const int first : {1, 11}) {  // steps repeated, and going on
    const std::string text = attempt_dump(8, 2048) + attempt_steps(1, 10, 500) + attempt_dump(64, 4096) +
                             attempt_steps(first, first + 9, 500);
    const RunResult result = result_of_attempts(text),
                    alone = result_of_attempts(attempt_dump(64, 4096) + attempt_steps(first, first + 9, 500));
    EXPECT_EQ(result.gpu_info.device_count, 64);
    EXPECT_EQ(result.training_config.sequence_length, 4096);
    EXPECT_EQ(result.step_times, alone.step_times);
    EXPECT_EQ(result.derived.tokens_per_second_per_gpu->value, alone.derived.tokens_per_second_per_gpu->value);
    EXPECT_EQ(result.source.attempts, 2);
    EXPECT_EQ(result.source.attempt, 2);
    EXPECT_TRUE(warns_of(result, "devices 8 and 64")) << fmt::format("{}", fmt::join(result.warnings, "\n"));
    EXPECT_TRUE(warns_of(result, "--attempt"));
  }
}

TEST(Attempts, EarlierOneIsThereToo) {
  const ReadLog read = read_log_text(attempt_dump(8, 2048) + attempt_steps(1, 10, 500) + attempt_dump(64, 2048) +
                                         attempt_steps(5, 12, 100) + attempt_steps(9, 20, 110),
                                     {});
  ASSERT_EQ(read.attempts, 3);
  const RunResult first = make_result(select_attempt(read, 1), "a.log", {});
  EXPECT_EQ(first.gpu_info.device_count, 8);
  EXPECT_EQ(first.step_times.size(), 10);
  EXPECT_EQ(first.source.attempt, 1);
  EXPECT_EQ(first.source.attempts, 3);
  const RunResult second = make_result(select_attempt(read, 2), "a.log", {});
  EXPECT_EQ(second.gpu_info.device_count, 64);
  EXPECT_EQ(second.step_times.size(), 8);
  const RunResult last_run = make_result(read, "a.log", {});  // attempts 2 and 3 have the same settings
  EXPECT_EQ(last_run.step_times.size(), 16);
  EXPECT_FALSE(last_run.source.attempt);
  EXPECT_TRUE(warns_of(last_run, "attempts 2 to 3"));
  EXPECT_TRUE(warns_of(last_run, "restarted 1 time:"));
  for (const int64_t wrong : {0, 4, -1}) EXPECT_THROW(select_attempt(read, wrong), Error) << wrong;
  try {
    select_attempt(read, 4);
  } catch (const Error& error) {
    EXPECT_NE(error.problems().front().what.find("3 attempts (1: steps 1 to 10, 2: steps 5 to 12, 3: steps 9 to 20)"),
              std::string::npos)
        << error.problems().front().what;
  }
}

TEST(Attempts, PlainRestartStaysOneRun) {
  const std::string text =
      attempt_dump(8, 2048) + attempt_steps(1, 10, 500) + attempt_dump(8, 2048) + attempt_steps(6, 20, 510);
  const ReadLog read = read_log_text(text, {});
  EXPECT_TRUE(read.earlier.empty());
  EXPECT_EQ(read.attempts, 2);
  const RunResult result = make_result(read, "a.log", {});
  EXPECT_EQ(result.step_times.size(), 20);
  EXPECT_TRUE(warns_of(result, "restarted 1 time:"));
  EXPECT_FALSE(warns_of(result, "--attempt"));
}

TEST(Attempts, AnotherSettingOfTheWorkPartsThem) {
  const auto setting = [](const char* name, const char* value) {
    return fmt::format("  {} ......................... {}\n", name, value);
  };
  const std::tuple<const char*, const char*, const char*> settings[] = {{"lora_rank", "None", "8"},
                                                                        {"num_experts", "None", "8"},
                                                                        {"mock_data", "False", "True"},
                                                                        {"attention_dropout", "0.0", "0.1"},
                                                                        {"packed_sequence", "False", "True"}};
  for (const auto& [name, was, is] : settings)
    for (const std::string& first : {setting(name, was), std::string()}) {
      const RunResult result =
          result_of_attempts(attempt_dump(8, 2048, first.c_str()) + attempt_steps(1, 3, 500) +
                             attempt_dump(8, 2048, setting(name, is).c_str()) + attempt_steps(4, 30, 300));
      EXPECT_EQ(result.step_times.size(), 27) << name << first;
      EXPECT_EQ(result.effective_config->at(name), is);
      EXPECT_TRUE(warns_of(result, name)) << fmt::format("{}", fmt::join(result.warnings, "\n"));
    }
  for (const auto& [was, is] : {std::pair{setting("lora_rank", "None"), std::string()},
                                std::pair{setting("attention_dropout", "0.0"), setting("attention_dropout", "0")},
                                std::pair{setting("mock_data", "True"), setting("mock_data", "1")}}) {
    const ReadLog same = read_log_text(attempt_dump(8, 2048, was.c_str()) + attempt_steps(1, 3, 500) +
                                           attempt_dump(8, 2048, is.c_str()) + attempt_steps(4, 30, 500),
                                       {});
    EXPECT_TRUE(same.earlier.empty()) << was;
  }
}

TEST(Attempts, EventsBeyondThoseKeptAreNotKnownOfAnAttempt) {
  LogBuilder log;
  LogLine line;
  const auto run = [&](int64_t skips) {
    for (int64_t step = 1; step <= 20; ++step, ++line.number) {
      ExtractedStep record = LogBuilder::start_step(line, step);
      record.loss = 9 - 0.001 * static_cast<double>(line.number);
      log.add(record);
    }
    for (int64_t i = 0; i < skips; ++i, ++line.number) log.add_event(EventKind::skipped_update, line, "overflow");
  };
  run(950);
  run(900);
  ReadLog read;
  read.log = log.take();
  number_attempts(read);
  ASSERT_EQ(read.attempts, 2);
  const auto first = select_attempt(read, 1), second = select_attempt(read, 2);
  EXPECT_EQ(first.log.event_counts.at(EventKind::skipped_update), 950);
  EXPECT_EQ(second.log.event_counts.count(EventKind::skipped_update), 0u);
  EXPECT_FALSE(make_result(second, "a.log", {}).skipped_updates);
  EXPECT_TRUE(warns_of(make_result(second, "a.log", {}), "skipped_update"));
  EXPECT_TRUE(first.log.notes.empty());
}

TEST(Attempts, OtherSettingsAreThoseOfTheLastStart) {
  const RunResult result = result_of_attempts(
      attempt_dump(8, 2048, "  load ............................... None\n") + attempt_steps(1, 10, 500) +
      attempt_dump(8, 2048, "  load ............................... /ckpt\n") + attempt_steps(11, 20, 500));
  EXPECT_EQ(result.step_times.size(), 20);
  EXPECT_EQ(result.effective_config->at("load"), "/ckpt");
}

TEST(Attempts, TwoJobsInOneLogAreNoRanks) {
  std::string mixed = attempt_dump(8, 2048), ranks = mixed;
  for (int step = 1; step <= 20; ++step) {
    const std::string line = attempt_steps(step, step, 500);
    std::string other = attempt_steps(step, step, 1000);
    other.replace(other.find("lm loss: "), 15, "lm loss: 7.0000");
    mixed += line + other;
    ranks += line + line;
  }
  EXPECT_EQ(result_of_attempts(mixed).status, RunStatus::invalid);
  EXPECT_NE(result_of_attempts(ranks).status_reason.value_or("").substr(0, 13), "the log mixes");
}

TEST(Attempts, TwoJobsAtTheirOwnSpeedsAreNoRestarts) {
  std::string mixed = attempt_dump(8, 2048), restarts = mixed;
  for (int step = 2; step <= 40; ++step) {
    mixed += attempt_steps(step, step, 500);
    if (step % 2 == 0 && step > 6) mixed += attempt_steps(step / 2, step / 2, 1000);
    if (step % 10 == 0) restarts += attempt_steps(step - 9, step, 500) + attempt_steps(step - 5, step - 2, 500);
  }
  EXPECT_NE(result_of_attempts(mixed).status_reason.value_or("").find("mixes the records"), std::string::npos);
  EXPECT_EQ(result_of_attempts(restarts).status_reason.value_or("").find("mixes"), std::string::npos);
}

TEST(Attempts, RestartThatGoesOnIsCountedByItsBanner) {
  const ReadLog read = read_log_text(
      attempt_dump(8, 2048) + attempt_steps(1, 10, 500) + attempt_dump(8, 2048) + attempt_steps(11, 20, 500), {});
  EXPECT_TRUE(read.earlier.empty());
  EXPECT_EQ(read.attempts, 2);
  EXPECT_EQ(make_result(read, "a.log", {}).step_times.size(), 20);
}

TEST(Attempts, DumpOfALateRankIsNoRestart) {
  std::string late;
  for (const char* line : {"[default1]:using world size: 8, data-parallel-size: 8, tensor-model-parallel size: 1\n"})
    late += line;
  const ReadLog read =
      read_log_text(attempt_dump(8, 2048) + attempt_steps(1, 2, 500) + late + attempt_steps(3, 10, 500), {});
  EXPECT_EQ(read.attempts, 1);
}

TEST(Attempts, LongerTrainingIsTheSameRun) {
  std::string again = attempt_steps(11, 20, 500);
  for (size_t at = 0; (at = again.find("/     100", at)) != std::string::npos;) again.replace(at, 9, "/     200");
  const ReadLog read = read_log_text(
      attempt_dump(8, 2048, "  train_iters ..................................... 100\n") + attempt_steps(1, 10, 500) +
          attempt_dump(8, 2048, "  train_iters ..................................... 200\n") + again,
      {});
  EXPECT_TRUE(read.earlier.empty());
  EXPECT_EQ(read.log.facts.max_steps, 200);
}

TEST(Attempts, RecordsAloneTellOfAnotherBatch) {
  const ReadLog read =
      read_log_text(attempt_dump(8, 2048) + attempt_steps(1, 10, 500) + attempt_steps(5, 14, 510, 16), {});
  ASSERT_EQ(read.earlier.size(), 1);
  const RunResult result = make_result(read, "a.log", {});
  EXPECT_EQ(result.training_config.global_batch_size, 16);
  EXPECT_EQ(result.step_times.size(), 10);
  EXPECT_EQ(make_result(select_attempt(read, 1), "a.log", {}).training_config.global_batch_size, 8);
  // A batch that grows with the training is none of another run.
  EXPECT_TRUE(
      read_log_text(attempt_steps(1, 5, 500) + attempt_steps(6, 10, 500, 16) + attempt_steps(8, 20, 510, 16), {})
          .earlier.empty());
}

TEST(Attempts, StartWithoutAStepLeavesTheRunAsItWas) {
  const std::string text = attempt_dump(8, 2048) + attempt_steps(1, 100, 500);
  const std::string failed =
      attempt_dump(64, 2048) + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n";
  const RunResult result = result_of_attempts(text + failed);
  EXPECT_EQ(result.gpu_info.device_count, 8);
  EXPECT_EQ(result.step_times.size(), 100);
  EXPECT_TRUE(warns_of(result, "reports no step"));
  EXPECT_EQ(result.status, RunStatus::failed);
}

TEST(Attempts, ModelOfAnotherShapeIsAnotherRun) {
  const auto model = [](int layers) {
    return fmt::format("  num_layers ...................................... {}\n", layers);
  };
  const ReadLog read = read_log_text(attempt_dump(8, 2048, model(16).c_str()) + attempt_steps(1, 10, 500) +
                                         attempt_dump(8, 2048, model(32).c_str()) + attempt_steps(11, 20, 500),
                                     {});
  ASSERT_EQ(read.earlier.size(), 1);
  EXPECT_EQ(read.log.settings.at("num_layers"), "32");
  EXPECT_EQ(read.earlier.front().log.settings.at("num_layers"), "16");
}

// Every fixture, then itself once more with other figures in the lines that report no step.

std::vector<fs::path> logs() {
  std::vector<fs::path> files;
  for (const Dialect& dialect : dialects())
    if (dialect.make_reader != nullptr)
      for (const auto& entry : fs::directory_iterator(k_repeated_fixtures / dialect.id))
        if (entry.path().extension() != ".expected") files.push_back(fs::relative(entry.path(), k_repeated_fixtures));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin) + "\n");
    begin = end + 1;
  }
  return lines;
}

std::set<int64_t> step_lines(const ReadLog& read) {
  std::set<int64_t> lines;
  for (const ExtractedStep& step : read.log.steps) lines.insert(step.line);
  return lines;
}

// The number where it stands alone, twice as large: "16" but neither "160" nor "0.16".
std::string double_number(std::string line, int64_t number) {
  const std::string from = std::to_string(number), to = std::to_string(2 * number);
  for (size_t at = 0; (at = line.find(from, at)) != std::string::npos;) {
    const auto continues = [&](size_t mark, size_t digit) {
      return mark < line.size() && digit < line.size() && (line[mark] == '.' || line[mark] == ',') &&
             is_digit(line[digit]);
    };
    const size_t end = at + from.size();
    const bool alone = (at == 0 || !is_digit(line[at - 1])) && (end == line.size() || !is_digit(line[end])) &&
                       !continues(at - 1, at - 2) && !continues(end, end + 1);
    if (alone) line.replace(at, from.size(), to);
    at += alone ? to.size() : from.size();
  }
  return line;
}

struct Pair {
  std::string first, second;  // the second with other settings
};

// `share` of the steps are those of the first; 1: both have all.
std::optional<Pair> make_pair(const fs::path& file, const std::optional<int64_t>& fact, double share) {
  const std::string text = read_file(k_repeated_fixtures / file);
  const ReadLog read = read_log_text(text, {});
  if (!fact || read.log.steps.size() < 2) return std::nullopt;
  const std::set<int64_t> lines = step_lines(read);
  const auto shared = static_cast<size_t>(static_cast<double>(lines.size()) * share);
  const int64_t cut = shared == lines.size() ? 0 : *std::next(lines.begin(), static_cast<std::ptrdiff_t>(shared));
  const std::vector<std::string> all = split_lines(text);
  Pair pair;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto number = static_cast<int64_t>(i) + 1;
    if (cut == 0 || number < cut) pair.first += all[i];
    if (cut == 0 || number < *lines.begin() || number >= cut)
      pair.second += lines.contains(number) ? all[i] : double_number(all[i], *fact);
  }
  return pair;
}

// What a result says of the run, wherever in the log it stands.
std::string without_place(const ReadLog& read) {
  const Json json = run_result_to_json(make_result(read, "a.log", {}));
  std::string kept;
  for (const char* key :
       {"gpu_info", "training_config", "parallelism_config", "model_info", "precision", "derived", "step_times",
        "loss_values", "reported", "performance_metrics", "effective_config", "dataset"})
    if (json.contains(key)) kept += fmt::format("{}: {}\n", key, print_json(json[key]));
  return kept;
}

using FactMember = std::optional<int64_t> LoggedFacts::*;

// The number of facts in which the two differ, after it was seen that nothing is mixed.
int check_pair(const fs::path& file, FactMember fact, double share) {
  const ReadLog whole = read_log(k_repeated_fixtures / file, {});
  const auto pair = make_pair(file, whole.log.facts.*fact, share);
  if (!pair) return 0;
  const std::string format = whole.dialect != nullptr ? std::string(whole.dialect->id) : "";
  const ReadLog first = read_log_text(pair->first, {format}), second = read_log_text(pair->second, {format});
  if (!first.earlier.empty() || !second.earlier.empty() || first.log.steps.empty() || second.log.steps.empty())
    return 0;
  const StatedFacts one{first.log.facts, first.log.settings}, other{second.log.facts, second.log.settings};
  if (differing_facts(one, other).empty()) return 0;
  const ReadLog both = read_log_text(pair->first + pair->second, {format});
  SCOPED_TRACE(fmt::format("{}, share {}: {}", file.string(), share, fmt::join(differing_facts(one, other), ", ")));
  EXPECT_EQ(both.attempts, first.attempts + second.attempts);
  EXPECT_EQ(without_place(both), without_place(second));
  EXPECT_EQ(both.earlier.size(), 1);
  if (!both.earlier.empty()) {
    EXPECT_EQ(without_place(both.earlier.front()), without_place(first));
  }
  return 1;
}

TEST(Attempts, NoDialectMixesTwoRuns) {
  std::set<std::string> dialects_seen;
  for (const fs::path& file : logs())
    for (const FactMember fact : std::initializer_list<FactMember>{
             &LoggedFacts::gpu_count, &LoggedFacts::global_batch_size, &LoggedFacts::micro_batch_size,
             &LoggedFacts::sequence_length, &LoggedFacts::tensor_parallel, &LoggedFacts::parameters})
      for (const double share : {1.0, 0.5})
        if (check_pair(file, fact, share) > 0) dialects_seen.insert(file.begin()->string());
  for (const char* each : {"megatron", "torchtitan", "primus_torchtitan", "llmc", "litgpt", "mlperf", "native", "nemo2",
                           "hf_trainer", "deepspeed"})
    EXPECT_TRUE(dialects_seen.contains(each)) << each;
}

}  // namespace
}  // namespace tprimat::logs

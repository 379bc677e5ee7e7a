#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "base/sanitizers.h"
#include "unit/archive/mutations.h"

namespace tprimat::results {
namespace {

template <class Document>
void change_each(const Files& files, const std::string& name, Census& census) {
  for (const Mutation& mutation : mutations_of<Document>(files.at(name))) {
    Files changed = files;
    Json json = parse_json(files.at(name), name);
    if (name == k_other_result && mutation.fact == "model_info.name" && json["model_info"].contains("shape"))
      continue;  // the shape may be that of the name
    value_at(json, mutation.place) = mutation.value;
    changed[name] = print_json(json);
    census.count(mutation, is_caught(seal_in_memory(changed)));
  }
}

TEST(Mutations, TheArchivesThemselvesHold) {
  const Verification run = seal_and_verify_in_memory(sealed_run()),
                     other = seal_and_verify_in_memory(sealed_extraction());
  EXPECT_TRUE(run.broken.empty()) << list_all(run);
  EXPECT_TRUE(run.notes.empty()) << run.notes.front();
  EXPECT_EQ(run.logs, 1);
  EXPECT_TRUE(other.broken.empty()) << list_all(other);
  EXPECT_EQ(other.logs, 1);
}

TEST(Mutations, OfTheResultOfARun) {
  Census census("result of a run");
  change_each<RunResult>(sealed_run(), k_run_result, census);
  for (const auto& [fact, value] : {std::pair{"status_reason", "somebody said so"}, {"failure_kind", "hung"}}) {
    Files changed = sealed_run();
    Json json = parse_json(changed[k_run_result], "");
    json[fact] = value;
    changed[k_run_result] = print_json(json);
    census.count({fact, fact, "added", "", {}}, is_caught(seal_in_memory(changed)));
  }
}

// A section that is left out states nothing: no forger may hide that a result is one of the suite's.
TEST(Mutations, LeaveOutASectionOfARun) {
  constexpr std::array k_one_witness = {"attempt",    "framework_version", "effective_config",
                                        "prediction", "telemetry",         "step_telemetry",
                                        "warnings",   "reported",          "profile"};
  const Files files = sealed_run();
  const Json json = parse_json(files.at(k_run_result), "");
  for (const auto& [key, value] : json.items()) {
    Files changed = files;
    Json without = json;
    without.erase(key);
    changed[k_run_result] = print_json(without);
    const Verification found = seal_and_verify_in_memory(changed);
    const bool is_silent = found.broken.empty() && found.notes.empty();
    const bool may_be = std::find(k_one_witness.begin(), k_one_witness.end(), key) != k_one_witness.end();
    EXPECT_TRUE(!is_silent || may_be) << key;
    EXPECT_EQ(found.results, key == "platform" || key == "status" ? 0 : 1) << key;
  }
}

TEST(Mutations, RepeatALineOfOurTrainer) {
  const Files files = sealed_run();
  const std::string log = files.at(k_run_log);
  const auto line_of = [&](const std::string& start) {
    const size_t begin = log.find(start);
    return log.substr(begin, log.find('\n', begin) + 1 - begin);
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    Files changed = files;
    changed[k_run_log].replace(log.find(from), from.size(), to);
    return is_caught(seal_in_memory(changed));
  };
  const std::string seventh = line_of(" iteration        7/"), header = line_of("model ");
  const auto edit = [](std::string line, const std::string& from, const std::string& to) {
    return line.replace(line.find(from), from.size(), to);
  };
  EXPECT_FALSE(with(seventh, seventh + seventh));
  EXPECT_TRUE(with(seventh, ""));
  EXPECT_TRUE(with(seventh, edit(seventh, "7/", "6/")));
  EXPECT_TRUE(with(seventh, seventh + edit(seventh, "lm loss: 8", "lm loss: 5")));
  EXPECT_TRUE(with(header, header + edit(header, "precision fp16", "precision fp8")));
  EXPECT_TRUE(with(header, header + edit(header, "threads 2", "threads 64")));
}

TEST(Mutations, OfASpecification) {
  Census census("train_spec.json");
  change_each<TrainSpec>(sealed_run(), k_run_spec, census);
}

TEST(Mutations, OfTheLaunch) {
  Census census("launch.json");
  change_each<LaunchFacts>(sealed_run(), k_run_launch, census);
}

// No log says all that logs can say.
TEST(Mutations, OfExtractedResults) {
  Census census("result from a log", false);
  change_each<RunResult>(sealed_extraction(), k_other_result, census);
  constexpr int k_stride = TPRIMAT_ADDRESS_SANITIZER ? 12 : 1;  // of the logs; all of them take a minute there
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(TPRIMAT_SOURCE_DIR) +
                                                                         "/tests/unit/extract/fixtures")) {
    if (entry.path().extension() != ".log" || ++count % k_stride != 0) continue;
    const std::string log = read_file(entry.path());
    if (!logs::read_log_text(log, {}).log.steps.empty()) change_each<RunResult>(seal_log(log), k_other_result, census);
  }
}

TEST(Mutations, OfStepRecords) {
  const Files files = sealed_run();
  Census census("steps.jsonl");
  std::vector<std::string> lines;
  std::istringstream stream(files.at(k_run_steps));
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  for (const size_t at : {size_t{1}, size_t{8}, size_t{19}})
    for (const Mutation& mutation : mutations_of<StepRecord>(lines[at])) {
      Json json = parse_json(lines[at], "");
      value_at(json, mutation.place) = mutation.value;
      std::string text;
      for (size_t i = 0; i < lines.size(); ++i) text += (i == at ? print_json_line(json) : lines[i]) + "\n";
      Files changed = files;
      changed[k_run_steps] = text;
      census.count(mutation, is_caught(seal_in_memory(changed)));
    }
}

TEST(Mutations, OfTheManifest) {
  const Files sealed = seal_in_memory(sealed_run());
  Census census(k_manifest_name);
  for (const Mutation& mutation : mutations_of<Manifest>(sealed.at(k_manifest_name))) {
    Files changed = sealed;
    Json json = parse_json(sealed.at(k_manifest_name), "");
    value_at(json, mutation.place) = mutation.value;
    changed[k_manifest_name] = print_json(json);
    census.count(mutation, is_caught(changed));
  }
}

}  // namespace
}  // namespace tprimat::results

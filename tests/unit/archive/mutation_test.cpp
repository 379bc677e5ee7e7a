// Facts are changed one at a time in real small archives, which are sealed again and verified: what list_facts() says
// of each fact is held against what verify_files() does.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <regex>
#include <set>
#include <span>

#include "archive/facts.h"
#include "base/error.h"
#include "base/files.h"
#include "base/sanitizers.h"
#include "compare/compare_runs.h"
#include "unit/archive/sealed_run.h"

namespace tprimat {
namespace {

struct Mutation {
  std::string fact, exact, description;  // exact: with the keys of maps
  Json::json_pointer place;
  Json value;
};

// "telemetry[].samples" of /telemetry/0/samples, by the schema: keys of a map are all one fact.
void collect(const Json& value, const Json& schema, const std::string& fact, const Json::json_pointer& place,
             std::vector<Mutation>& mutations);

void collect_members(const Json& value, const Json& schema, const std::string& fact, const Json::json_pointer& place,
                     std::vector<Mutation>& mutations) {
  for (const auto& [key, member] : value.items()) {
    const bool is_field = schema.contains("properties") && schema["properties"].contains(key);
    if (is_field)
      collect(member, schema["properties"][key], fact.empty() ? key : fact + "." + key, place / key, mutations);
    else if (schema.contains("additionalProperties"))
      collect(member, schema["additionalProperties"], fact + ".*", place / key, mutations);
  }
}

std::string other_choice(const Json& schema, const std::string& word) {
  for (const Json& choice : schema["enum"])
    if (choice != word) return choice.get<std::string>();
  return word;
}

void collect(const Json& value, const Json& schema, const std::string& fact, const Json::json_pointer& place,
             std::vector<Mutation>& mutations) {
  const std::string exact = std::regex_replace(place.to_string().substr(place.empty() ? 0 : 1), std::regex("/"), ".");
  const auto add = [&](const char* how, const Json& changed) {
    mutations.push_back({fact, exact, how, place, changed});
  };
  if (value.is_object()) {
    collect_members(value, schema, fact, place, mutations);
  } else if (value.is_array()) {
    if (!value.empty())
      collect(value[value.size() / 2], schema["items"], fact + "[]", place / (value.size() / 2), mutations);
  } else if (value.is_boolean()) {
    add("flipped", !value.get<bool>());
  } else if (value.is_number_integer()) {
    add("doubled", value.get<int64_t>() == 0 ? 1 : 2 * value.get<int64_t>());
    if (value.get<int64_t>() > 1) add("halved", value.get<int64_t>() / 2);
    if (value.get<int64_t>() > 1) add("one less", value.get<int64_t>() - 1);
    if (value.get<int64_t>() > 1) add("one more", value.get<int64_t>() + 1);
  } else if (value.is_number()) {
    add("doubled", value.get<double>() == 0 ? 1.0 : 2 * value.get<double>());
    if (value.get<double>() != 0) add("halved", value.get<double>() / 2);
  } else if (value.is_string() && schema.contains("enum")) {
    add("another", other_choice(schema, value.get<std::string>()));
  } else if (value.is_string() && fact == "gpu_info.device_name" && value == k_sealed_device) {
    add("another", "NVIDIA A100-SXM4-80GB");
  } else if (value.is_string() && !value.get_ref<const std::string&>().empty()) {  // a user may add what a log lacks
    add("renamed", parse_timestamp(value.get<std::string>()) && fact == "timestamp"
                       ? Json("2026-01-03T00:00:00Z")
                       : Json(value.get<std::string>() + "x"));
  }
}

template <class Document>
std::vector<Mutation> mutations_of(const std::string& json) {
  std::vector<Mutation> mutations;
  collect(parse_json(json, ""), json_schema<Document>(), "", Json::json_pointer(), mutations);
  return mutations;
}

bool is_caught(const Files& sealed) {
  try {
    return !verify_in_memory(sealed).broken.empty();
  } catch (const Error&) {  // refused altogether
    return true;
  }
}

// What the program says of a document's facts, against what was found of them.
class Census {
 public:
  // `shows_all`: a fact that is listed with witnesses and never changed is a claim that no case shows.
  explicit Census(const std::string& document, bool shows_all = true) : document_(document), shows_all_(shows_all) {
    for (const Fact& fact : list_facts())
      if (fact.document == document) witnesses_[fact.name] = fact.witnesses;
  }

  void count(const Mutation& mutation, bool caught) {
    ++cases_;
    const std::string fact = witnesses_.contains(mutation.exact) ? mutation.exact : mutation.fact;
    ASSERT_TRUE(witnesses_.contains(fact)) << document_ << ": " << fact << " is not listed";
    changed_.insert(fact);
    const std::string& witnesses = witnesses_[fact];
    EXPECT_EQ(caught, !witnesses.empty())
        << document_ << ": " << fact << ", " << mutation.description << ", is "
        << (caught ? "caught, but listed as a fact of one witness" : "not caught, but listed with " + witnesses);
  }

  ~Census() {
    for (const auto& [fact, witnesses] : witnesses_)
      EXPECT_TRUE(!shows_all_ || witnesses.empty() || changed_.contains(fact))
          << document_ << ": " << fact << " was never changed";
    std::cout << document_ << ": " << cases_ << " cases\n";
  }
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;

 private:
  std::string document_;
  bool shows_all_;
  std::map<std::string, std::string> witnesses_;
  std::set<std::string> changed_;
  int cases_ = 0;
};

template <class Document>
void change_each(const Files& files, const std::string& name, Census& census) {
  for (const Mutation& mutation : mutations_of<Document>(files.at(name))) {
    Files changed = files;
    Json json = parse_json(files.at(name), name);
    if (name == k_other_result && mutation.fact == "model_info.name" && json["model_info"].contains("shape"))
      continue;  // the shape may be that of the name
    json[mutation.place] = mutation.value;
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
    census.count({fact, fact, "added", Json::json_pointer(), {}}, is_caught(seal_in_memory(changed)));
  }
}

// A section that is left out states nothing: no forger may hide that a result is one of the suite's.
TEST(Mutations, LeaveOutASectionOfARun) {
  constexpr std::array k_one_witness = {"attempt",   "framework_version", "effective_config", "prediction",
                                        "telemetry", "step_telemetry",    "warnings",         "reported"};
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
  constexpr int k_stride = TPRIMAT_ADDRESS_SANITIZER ? 5 : 1;  // of the logs; all of them take a minute there
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(TPRIMAT_SOURCE_DIR) +
                                                                         "/tests/unit/extract/fixtures")) {
    if (entry.path().extension() != ".log" || ++count % k_stride != 0) continue;
    const std::string log = read_file(entry.path());
    if (!read_log_text(log, {}).log.steps.empty()) change_each<RunResult>(seal_log(log), k_other_result, census);
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
      json[mutation.place] = mutation.value;
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
    json[mutation.place] = mutation.value;
    changed[k_manifest_name] = print_json(json);
    census.count(mutation, is_caught(changed));
  }
}

// Where the figures of a log's lines stand, by their facts.
struct PrintedFigure {
  const char *fact, *label;
};
constexpr PrintedFigure k_own_log[] = {{"step", "iteration   "},
                                       {"max_steps (first line)", "/     "},
                                       {"max_steps (other lines)", "/     "},
                                       {"samples_seen", "samples: "},
                                       {"time_seconds", "(ms): "},
                                       {"tokens_per_second", "second: "},
                                       {"learning_rate", "rate: "},
                                       {"global_batch_size", "size: "},
                                       {"loss", "lm loss: "},
                                       {"loss_scale", "scale: "},
                                       {"grad_norm", "norm: "},
                                       {"parameters", "parameters "},
                                       {"threads", "threads "},
                                       {"allocated", "allocated "},
                                       {"validation_loss", "loss value: "},
                                       {"validation_perplexity", "loss PPL: "}};
constexpr PrintedFigure k_megatron_log[] = {{"step", "iteration   "},
                                            {"samples_seen", "samples: "},
                                            {"time_seconds", "(ms): "},
                                            {"tflops_per_gpu", "GPU): "},
                                            {"learning_rate", "rate: "},
                                            {"loss", "lm loss: "},
                                            {"loss_scale", "scale: "},
                                            {"grad_norm", "norm: "},
                                            {"settings", "seq_length ...................................... "}};

// The k-th figure behind the label, doubled.
std::string double_figure(std::string log, const std::string& label, int k) {
  size_t at = 0;
  for (int i = 0; i <= k && at != std::string::npos; ++i) at = log.find(label, at + 1);
  if (at == std::string::npos) at = log.find(label);  // it comes once
  const size_t begin = log.find_first_not_of(' ', at + label.size());
  const size_t end = log.find_first_not_of("0123456789.E+-", begin);
  const std::string figure = log.substr(begin, end - begin);
  const bool is_whole = figure.find('.') == std::string::npos;
  const double doubled = 2 * std::stod(figure);
  return log.replace(begin, end - begin, is_whole ? fmt::format("{:.0f}", doubled) : fmt::format("{:.6E}", doubled));
}

void change_log(const Files& files, const char* name, std::span<const PrintedFigure> figures, Census& census) {
  for (const PrintedFigure& figure : figures)
    for (const int k : {0, 1, 6, 11, 20}) {
      const std::string fact = figure.fact;
      if ((fact.ends_with("(first line)") && k > 0) || (fact.ends_with("(other lines)") && k == 0)) continue;
      Files changed = files;
      changed[name] = double_figure(files.at(name), figure.label, k);
      ASSERT_NE(changed[name], files.at(name)) << figure.label;
      census.count({fact, fact, fmt::format("figure {}", k), Json::json_pointer(), {}},
                   is_caught(seal_in_memory(changed)));
    }
}

TEST(Mutations, OfALogOfOurTrainer) {
  Census census("log of our trainer");
  change_log(sealed_run(), k_run_log, k_own_log, census);
  for (const auto& [fact, from, to] :
       {std::tuple{"precision", "precision fp16", "precision bf16"}, {"model", "model tiny", "model tinier"}}) {
    Files changed = sealed_run();
    changed[k_run_log].replace(changed[k_run_log].find(from), std::string(from).size(), to);
    census.count({fact, fact, to, Json::json_pointer(), {}}, is_caught(seal_in_memory(changed)));
  }
}

TEST(Mutations, OfALogThatWasExtracted) {
  Census census("log of another framework");
  change_log(sealed_extraction(), k_other_log, k_megatron_log, census);
}

// What a file may differ in without saying anything else.
struct Rewriting {
  const char* description;
  std::function<void(Files&)> apply;
};

Json with_sorted_keys(const Json& value) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& each : value) list.push_back(with_sorted_keys(each));
    return list;
  }
  if (!value.is_object()) return value;
  std::map<std::string, Json, std::greater<>> members;
  for (const auto& [key, member] : value.items()) members[key] = with_sorted_keys(member);
  Json object = Json::object();
  for (const auto& [key, member] : members) object[key] = member;
  return object;
}

std::function<void(Files&)> rewrite_json(const char* name, const std::function<std::string(Json)>& print) {
  return [=](Files& files) { files[name] = print(parse_json(files[name], name)); };
}

std::function<void(Files&)> rewrite_value(const char* name, const char* pointer, const Json& value) {
  return rewrite_json(name, [=](Json json) {
    json[Json::json_pointer(pointer)] = value;
    return print_json(json);
  });
}

std::vector<Rewriting> rewritings() {
  std::vector<Rewriting> list;
  for (const char* name : {k_run_result, k_run_spec, k_run_launch}) {
    list.push_back({"keys in another order",
                    rewrite_json(name, [](const Json& json) { return print_json(with_sorted_keys(json)); })});
    list.push_back({"one line", rewrite_json(name, [](const Json& json) { return json.dump(); })});
    list.push_back({"tabs and blank lines",
                    rewrite_json(name, [](const Json& json) { return "\n\n" + json.dump(7, '\t') + "\n\n"; })});
    list.push_back({"a key of another tool", rewrite_value(name, "/made_by", "somebody")});
  }
  for (const char* name : {k_run_steps, k_run_log})
    for (const char* rest : {"\n\n", "  \n"})
      list.push_back({"blank lines", [=](Files& files) { files[name] = rest + files[name] + rest; }});
  list.push_back({"comments", [](Files& files) { files[k_run_log] = "# ours\n" + files[k_run_log] + "done\n"; }});
  list.push_back({"path of the log",
                  rewrite_value(k_run_result, "/source/log", "/mnt/elsewhere/output/training_native_tiny.log")});
  list.push_back({"path of the records",
                  rewrite_value(k_run_result, "/source/steps_file", "runs/train_nvd_native_tiny/steps.jsonl")});
  list.push_back({"path of the checkpoints", rewrite_value(k_run_spec, "/checkpoint/directory", "/mnt/c")});
  list.push_back({"time zone", rewrite_value(k_run_result, "/timestamp", "2026-01-02T02:00:00+02:00")});
  list.push_back({"time zone", rewrite_value(k_run_result, "/timestamp", "2026-01-01T19:00:00-05:00")});
  list.push_back({"fraction of a second", rewrite_value(k_run_result, "/timestamp", "2026-01-02T00:00:00.000Z")});
  list.push_back(
      {"a whole number with a point", rewrite_value(k_run_result, "/training_config/global_batch_size", 16.0)});
  list.push_back({"a whole number with a point", rewrite_value(k_run_spec, "/global_batch_size", 16.0)});
  list.push_back({"another name of a precision", rewrite_value(k_run_result, "/precision", "float16")});
  list.push_back({"another name of a precision", rewrite_value(k_run_spec, "/precision", "float16")});
  list.push_back({"another name of a platform", rewrite_value(k_run_result, "/platform", "nvidia")});
  list.push_back({"a configuration", [](Files& files) { files["config.yaml"] = "# comment\n\ntraining: {}\n"; }});
  list.push_back({"records in another order", [](Files& files) {
                    const std::string& lines = files[k_run_steps];
                    const size_t end = lines.find('\n') + 1;
                    files[k_run_steps] = lines.substr(end) + lines.substr(0, end);
                  }});
  list.push_back({"line ends of Windows", [](Files& files) {
                    files[k_run_log] = std::regex_replace(files[k_run_log], std::regex("\n"), "\r\n");
                  }});
  return list;
}

std::pair<Verdict, bool> compare_with_slower(const Files& files) {
  const auto load = [&](const char* path) { return LoadedRun{path, read_run_result(files.at(k_run_result), path)}; };
  LoadedRun slower = load("slower.json");
  slower.result.framework = Framework::mega;
  for (double& seconds : slower.result.step_times) seconds *= 1.5;
  summarise_run(slower.result, stored_options(slower.result));
  const Comparison comparison = compare_runs({{load(k_run_result), slower}, {}}, {});
  const Pair& pair = comparison.groups.at(0).pairs.at(0);
  return {pair.verdict, pair.comparable};
}

TEST(Mutations, WithoutMeaningChangeNoVerdict) {
  const auto verdict = compare_with_slower(sealed_run());
  int cases = 0;
  for (const Rewriting& each : rewritings()) {
    Files files = sealed_run();
    each.apply(files);
    const Verification found = seal_and_verify_in_memory(files);
    EXPECT_TRUE(found.broken.empty()) << each.description << ", case " << cases << ":\n" << list_all(found);
    EXPECT_TRUE(found.notes.empty()) << each.description << ": " << found.notes.front();
    EXPECT_EQ(compare_with_slower(files), verdict) << each.description;
    ++cases;
  }
  std::cout << "without meaning: " << cases << " cases\n";
}

}  // namespace
}  // namespace tprimat

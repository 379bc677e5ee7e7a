#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <utility>

#include "compare/compare_runs.h"
#include "unit/archive/sealed_run.h"
#include "unit/json_place.h"

namespace tprimat::results {
namespace {

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
    value_at(json, pointer) = value;
    return print_json(json);
  });
}

void add_rewritings_of_json(std::vector<Rewriting>& list) {
  for (const char* name : {k_run_result, k_run_spec, k_run_launch}) {
    list.push_back({"keys in another order",
                    rewrite_json(name, [](const Json& json) { return print_json(with_sorted_keys(json)); })});
    list.push_back({"one line", rewrite_json(name, [](const Json& json) { return print_json_line(json); })});
    list.push_back({"tabs and blank lines", rewrite_json(name, [](const Json& json) {
                      return "\n\n" + replace_all(print_json(json), "\n", "\n\n\t\t") + "\n\n";
                    })});
    list.push_back({"a key of another tool", rewrite_value(name, "/made_by", "somebody")});
  }
}

void add_rewritings_of_text(std::vector<Rewriting>& list) {
  for (const char* name : {k_run_steps, k_run_log})
    for (const char* rest : {"\n\n", "  \n"})
      list.push_back({"blank lines", [=](Files& files) { files[name] = rest + files[name] + rest; }});
  list.push_back({"comments", [](Files& files) { files[k_run_log] = "# ours\n" + files[k_run_log] + "done\n"; }});
  list.push_back({"a configuration", [](Files& files) { files["config.yaml"] = "# comment\n\ntraining: {}\n"; }});
  list.push_back({"records in another order", [](Files& files) {
                    const std::string& lines = files[k_run_steps];
                    const size_t end = lines.find('\n') + 1;
                    files[k_run_steps] = lines.substr(end) + lines.substr(0, end);
                  }});
  list.push_back({"line ends of Windows", [](Files& files) {
                    files[k_run_log] = std::regex_replace(files[k_run_log], std::regex("\n"), "\r\n");
                  }});
}

void add_rewritings_of_values(std::vector<Rewriting>& list) {
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
}

std::vector<Rewriting> rewritings() {
  std::vector<Rewriting> list;
  add_rewritings_of_json(list);
  add_rewritings_of_text(list);
  add_rewritings_of_values(list);
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
}  // namespace tprimat::results

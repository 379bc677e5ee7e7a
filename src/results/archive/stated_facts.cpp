#include "archive/stated_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "archive/redactor.h"
#include "archive/stated_numbers.h"
#include "base/error.h"
#include "extract/scan_text.h"
#include "result/asked_facts.h"
#include "result/result_file.h"
#include "spec/config_hash.h"

namespace tprimat::results {
namespace {

bool is_same(const Json& stated, const Json& told) {
  if (stated.is_number() && told.is_number()) return is_same_number(stated, told);
  return stated == told || (is_hidden(stated) && is_hidden(told));
}

class TestimonyCheck {
 public:
  TestimonyCheck(const StatedResult& result, const Testimony& testimony, Verification& found)
      : result_(result), testimony_(testimony), found_(found) {}

  void check(const std::string& where, const Json& stated, const Json& told) {
    if (told.is_object() && stated.is_object()) {
      for (const auto& [key, value] : told.items())
        if (stated.contains(key)) check(where.empty() ? key : where + "." + key, stated[key], value);
    } else if (!stated.is_null() && !told.is_null()) {
      ++found_.facts;
      if (!is_same(stated, told))
        found_.broken.push_back({result_.file, where, show_word(stated), show_word(told), testimony_.witness});
    }
  }

 private:
  const StatedResult& result_;
  const Testimony& testimony_;
  Verification& found_;
};

// The members of `whole` with these keys.
Json parts_of(const Json& whole, std::initializer_list<const char*> keys) {
  Json parts = Json::object();
  for (const char* key : keys)
    if (whole.contains(key)) parts[key] = whole[key];
  return parts;
}

Testimony testimony_of(const std::string& spec_name, const TrainSpec& spec) {
  RunResult asked;
  fill_asked_facts(asked, spec);
  Json says = parts_of(run_result_to_json(asked),
                       {"model_info", "precision", "dataset", "training_config", "parallelism_config"});
  says["gpu_info"] = {{"device_count", spec.parallel.ranks()}};
  return {spec_name, std::move(says)};
}

// Older archives hold no launch.json: the defaults then mean ranks started on one machine.
LaunchFacts launch_facts_of(const StatedResult& result, const RequestFiles& files) {
  if (!files.launch.empty())
    return launch_facts_from_json(parse_json(files.launch, files.launch_name), files.launch_name);
  LaunchFacts facts;
  facts.framework = result.read.framework.value_or(Framework::native);
  facts.platform = result.read.platform.value_or(Platform::cpu);
  return facts;
}

// A detected warm-up may exclude any number of steps. A fixed warm-up and the price must match launch.json.
void check_launch(const StatedResult& result, const RequestFiles& files, Verification& found) {
  const LaunchFacts launch = launch_facts_of(result, files);
  check_testimony(result, {files.launch_name, parts_of(launch_facts_to_json(launch), {"framework", "platform"})},
                  found);
  const auto check = [&](const char* fact, const std::string& stated, const std::string& asked) {
    ++found.facts;
    if (stated != asked) found.broken.push_back({result.file, fact, stated, asked, files.launch_name});
  };
  if (launch.launcher == Launcher::local && launch.nodes != 1)
    found.broken.push_back(
        {files.launch_name, "nodes", std::to_string(launch.nodes), "1, because the ranks start on one machine"});
  const bool is_fixed = result.read.warmup.method == WarmupMethod::fixed;
  if (is_fixed || launch.fixed_warmup_steps) {
    const int64_t steps = std::ssize(result.read.step_times);
    const auto asked = launch.fixed_warmup_steps;
    check("warmup",
          fmt::format("{}, {} steps", enum_name(result.read.warmup.method), result.read.warmup.steps_excluded),
          asked ? fmt::format("fixed, {} steps", std::min(steps, std::max<int64_t>(1, *asked))) : "none is fixed");
  }
  const auto show = [](const std::optional<double>& price) { return price ? fmt::format("{}", *price) : "nothing"; };
  check("derived.usd_per_hour", show(result.read.derived.usd_per_hour), show(launch.usd_per_hour));
}

// Ranks on this machine share its processors, and no more threads work than there are.
void check_threads(const StatedResult& result, const RequestFiles& files, const TrainSpec& spec, Verification& found) {
  const RunResult& run = result.read;
  const auto check = [&](const char* fact, const std::string& stated, int64_t asked) {
    ++found.facts;
    if (stated != std::to_string(asked))
      found.broken.push_back({result.file, fact, stated, std::to_string(asked), files.spec_name});
  };
  const auto used = run.environment.find("cpu_threads_used"), usable = run.environment.find("cpu_threads_usable");
  const int64_t wanted = std::max<int64_t>(1, spec.threads) * spec.parallel.ranks();
  if (used != run.environment.end() && usable != run.environment.end())
    check("environment.cpu_threads_used", used->second,
          std::min(wanted, logs::parse_whole(usable->second).value_or(wanted)));
  if (run.framework != Framework::native || spec.threads < 1 || !run.effective_config) return;
  const auto printed = run.effective_config->find("threads");
  if (printed != run.effective_config->end()) check("effective_config.threads", printed->second, spec.threads);
}

bool holds_a_stand_in(const Json& value) {
  if (value.is_string()) return holds_stand_in(value.text());
  return value.is_structured() && std::any_of(value.begin(), value.end(), holds_a_stand_in);
}

void check_hash(const StatedResult& result, const RequestFiles& files, const Json& spec, Verification& found) {
  if (!result.read.config_hash) return;
  const TrainSpec read = train_spec_from_json(spec, files.spec_name);
  LaunchFacts launch = launch_facts_of(result, files);
  if (files.launch.empty()) launch.checkpoint_directory = read.checkpoint.directory;
  const std::string of_file = hash_config_of_file(spec, launch);
  const std::string of_spec = hash_config_of_file(train_spec_to_json(read), launch);
  ++found.facts;
  if (*result.read.config_hash == of_file || *result.read.config_hash == of_spec) {
    if (files.launch.empty())
      found.notes.push_back(
          fmt::format("{}: there is no launch.json beside {}: its fixed warm-up and price were not checked",
                      result.file, files.spec_name));
    return;
  }
  const std::string note = fmt::format("{}: its config_hash was not checked: ", result.file);
  if (holds_a_stand_in(spec) || holds_a_stand_in(launch_facts_to_json(launch)))
    found.notes.push_back(note + "names are redacted in " + files.spec_name);
  else if (files.launch.empty())
    found.notes.push_back(note + "there is no launch.json beside " + files.spec_name);
  else
    found.broken.push_back({result.file, "config_hash", *result.read.config_hash, of_file,
                            files.spec_name + " with " + files.launch_name});
}

}  // namespace

void check_testimony(const StatedResult& result, const Testimony& testimony, Verification& found) {
  TestimonyCheck(result, testimony, found).check("", run_result_to_json(result.read), testimony.says);
}

void check_request(const StatedResult& result, const RequestFiles& files, Verification& found) {
  if (files.spec.empty()) {
    if (result.of_suite)
      found.notes.push_back(fmt::format("{}: there is no {} in the archive: its settings were not checked", result.file,
                                        files.spec_name));
    return;
  }
  const Json spec = parse_json(files.spec, files.spec_name);
  const TrainSpec read = train_spec_from_json(spec, files.spec_name);
  check_testimony(result, testimony_of(files.spec_name, read), found);
  check_threads(result, files, read, found);
  if (!files.launch.empty()) check_launch(result, files, found);
  check_hash(result, files, spec, found);
}

}  // namespace tprimat::results

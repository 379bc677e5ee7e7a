#include "archive/witnesses.h"

#include <fmt/format.h>

#include <algorithm>

#include "archive/redactor.h"
#include "base/error.h"
#include "extract/scan_text.h"
#include "result/peak.h"
#include "result/result_file.h"
#include "result/run_result.h"
#include "result/summary.h"
#include "spec/config_hash.h"

namespace tprimat::results {
namespace {

bool is_same(const Json& stated, const Json& told) {
  if (stated.is_number() && told.is_number()) return is_same_number(stated, told);
  return stated == told || (is_hidden(stated) && is_hidden(told));
}

// Compares each value that the witness states with the same value of the result. Values absent from the result are not
// compared.
void check_testimony(const ResultCheck& check, const std::string& where, const Json& stated, const Json& told) {
  if (told.is_object() && stated.is_object()) {
    for (const auto& [key, value] : told.items())
      if (stated.contains(key)) check_testimony(check, where.empty() ? key : where + "." + key, stated[key], value);
  } else if (!stated.is_null() && !told.is_null()) {
    ++check.found.facts;
    if (!is_same(stated, told)) check.refute(where, show_word(stated), show_word(told));
  }
}

// The members of `whole` with these keys.
Json parts_of(const Json& whole, std::initializer_list<const char*> keys) {
  Json parts = Json::object();
  for (const char* key : keys)
    if (whole.contains(key)) parts[key] = whole[key];
  return parts;
}

// Laid out like a result.
Json testimony_of(const TrainSpec& spec) {
  RunResult asked;
  fill_asked_facts(asked, spec);
  Json says = parts_of(run_result_to_json(asked),
                       {"model_info", "precision", "dataset", "training_config", "parallelism_config"});
  says["gpu_info"] = {{"device_count", spec.parallel.ranks()}};
  return says;
}

// A framework's log may name the dispatcher that was left to it.
void check_asked_routing(const ResultCheck& check, const TrainSpec& spec) {
  RunResult asked;
  fill_asked_facts(asked, spec);
  if (!asked.experts) return;
  const RunResult& stated = check.result.read;
  const bool is_left_to_log = stated.source.format == "log" && !spec.dispatcher;
  if (is_left_to_log && stated.experts) asked.experts->dispatcher = stated.experts->dispatcher;
  check_routing(check, *asked.experts);
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
void check_launch(const ResultCheck& check, const RequestFiles& files) {
  const RunResult& run = check.result.read;
  const LaunchFacts launch = launch_facts_of(check.result, files);
  check_testimony(check, "", run_result_to_json(run),
                  parts_of(launch_facts_to_json(launch), {"framework", "platform"}));
  if (run.framework_installation || launch.installation)
    check.compare("framework_installation", run.framework_installation.value_or("nothing"),
                  launch.installation ? launch.installation->label : "nothing");
  if (launch.launcher == Launcher::local && launch.nodes != 1)
    check.found.broken.push_back(
        {files.launch_name, "nodes", std::to_string(launch.nodes), "1, because the ranks start on one machine"});
  if (run.warmup.method == WarmupMethod::fixed || launch.fixed_warmup_steps) {
    const int64_t steps = std::ssize(run.step_times);
    const auto asked = launch.fixed_warmup_steps;
    check.compare(
        "warmup", fmt::format("{}, {} steps", enum_name(run.warmup.method), run.warmup.steps_excluded),
        asked ? fmt::format("fixed, {} steps", std::min(steps, std::max<int64_t>(1, *asked))) : "none is fixed");
  }
  const auto show = [](const std::optional<double>& price) { return price ? fmt::format("{}", *price) : "nothing"; };
  check.compare("derived.usd_per_hour", show(run.derived.usd_per_hour), show(launch.usd_per_hour));
}

// Ranks on this machine share its processors, and no more threads work than there are.
void check_threads(const ResultCheck& check, const TrainSpec& spec) {
  const RunResult& run = check.result.read;
  const auto used = run.environment.find("cpu_threads_used"), usable = run.environment.find("cpu_threads_usable");
  const int64_t wanted = std::max<int64_t>(1, spec.threads) * spec.parallel.ranks();
  if (used != run.environment.end() && usable != run.environment.end())
    check.compare("environment.cpu_threads_used", used->second,
                  std::to_string(std::min(wanted, logs::parse_whole(usable->second).value_or(wanted))));
  if (run.framework != Framework::native || spec.threads < 1 || !run.effective_config) return;
  const auto printed = run.effective_config->find("threads");
  if (printed != run.effective_config->end())
    check.compare("effective_config.threads", printed->second, std::to_string(spec.threads));
}

bool holds_a_stand_in(const Json& value) {
  if (value.is_string()) return holds_stand_in(value.text());
  return value.is_structured() && std::ranges::any_of(value, holds_a_stand_in);
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

using Word = std::optional<std::string>;

// A fact of a result, and the value that another part of the same result implies. Without either there is no check.
struct OwnFact {
  const char* fact;
  Word (*stated)(const RunResult&);
  Word (*follows)(const RunResult&);
};

Word from_environment(const RunResult& run, const std::string& key) {
  const auto found = run.environment.find(key);
  return found == run.environment.end() || found->second.empty() ? std::nullopt : Word(found->second);
}

Word stack_of(const RunResult& run) {
  if (!run.platform) return std::nullopt;
  return *run.platform == Platform::nvd ? "cuda" : *run.platform == Platform::amd ? "rocm" : "cpu";
}

// Whether the processor of a run has no products of 16-bit numbers and multiplies them in fp32.
bool widens(const RunResult& run) {
  if (run.platform != Platform::cpu) return false;
  if (from_environment(run, "env.ONEDNN_MAX_CPU_ISA") || from_environment(run, "env.DNNL_MAX_CPU_ISA")) return true;
  const std::string sets = from_environment(run, "cpu_instruction_sets").value_or("");
  if (run.precision == Precision::bf16) return sets.find("avx512_bf16") == std::string::npos;
  return run.precision == Precision::fp16 && sets.find("avx512_fp16") == std::string::npos;
}

Word stated_peak_precision(const RunResult& run) {
  if (!run.derived.peak) return std::nullopt;
  const std::string& id = run.derived.peak->id;
  return id.substr(id.rfind(':') + 1);
}

Word true_peak_precision(const RunResult& run) {
  if (!run.precision || !run.derived.peak) return std::nullopt;
  const bool is_widened = run.derived.peak->id == "measured:cpu:fp32" && widens(run);
  return std::string(enum_name(is_widened ? Precision::fp32 : *run.precision));
}

constexpr OwnFact k_own_facts[] = {
    {"gpu_info.software_stack", [](const RunResult& run) { return run.gpu_info.software_stack; }, stack_of},
    {"gpu_info.device_name", [](const RunResult& run) { return Word(run.gpu_info.device_name); },
     [](const RunResult& run) { return run.platform == Platform::cpu ? from_environment(run, "cpu") : std::nullopt; }},
    {"gpu_info.software_version", [](const RunResult& run) { return run.gpu_info.software_version; },
     [](const RunResult& run) { return from_environment(run, run.gpu_info.software_stack.value_or("")); }},
    {"framework_version", [](const RunResult& run) { return run.framework_version; },
     [](const RunResult& run) {
       return run.framework == Framework::native ? from_environment(run, "tprimat") : std::nullopt;
     }},
    {"derived.peak.id",
     [](const RunResult& run) {
       const bool is_catalogued = run.derived.peak && run.derived.peak->id.starts_with("catalogue:");
       return is_catalogued ? Word(run.derived.peak->id) : std::nullopt;
     },
     [](const RunResult& run) {
       const auto peak = run.precision ? catalogue_peak(run.gpu_info.device_name, *run.precision) : std::nullopt;
       return peak ? Word(peak->id) : std::nullopt;
     }},
    {"derived.peak.id", stated_peak_precision, true_peak_precision}};

}  // namespace

void check_request(const StatedResult& result, const RequestFiles& files, Verification& found) {
  if (files.spec.empty()) {
    if (result.of_suite)
      found.notes.push_back(fmt::format("{}: there is no {} in the archive: its settings were not checked", result.file,
                                        files.spec_name));
    return;
  }
  const Json spec = parse_json(files.spec, files.spec_name);
  const TrainSpec read = train_spec_from_json(spec, files.spec_name);
  const ResultCheck against_spec{result, files.spec_name, found};
  check_testimony(against_spec, "", run_result_to_json(result.read), testimony_of(read));
  check_asked_routing(against_spec, read);
  check_threads(against_spec, read);
  if (!files.launch.empty()) check_launch({result, files.launch_name, found}, files);
  check_hash(result, files, spec, found);
}

bool is_of_suite(const RunResult& result) {
  const std::string format = result.source.format.value_or("");
  const bool is_extracted = !format.empty() && format != "log" && format != "tprimat-steps";
  return result.config_hash || result.source.steps_file || format == "log" || format == "tprimat-steps" ||
         (result.framework == Framework::native && !is_extracted);
}

void check_own_facts(const StatedResult& result, Verification& found) {
  if (!result.of_suite) return;
  for (const OwnFact& each : k_own_facts) {
    const Word stated = each.stated(result.read), follows = each.follows(result.read);
    if (stated && follows) ResultCheck{result, "", found}.compare(each.fact, *stated, *follows);
  }
}

}  // namespace tprimat::results

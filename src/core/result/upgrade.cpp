#include <fmt/format.h>

#include "result/result_file.h"
#include "spec/train_spec.h"
#include "text/json_fields.h"
#include "text/words.h"

namespace tprimat {
namespace {

// The facts in an older file's name: [train|benchmark]_<platform>_<framework>_<model>[_r<k>].json, any part but the
// model optional.
struct NameParts {
  std::optional<Platform> platform;
  std::optional<Framework> framework;
  std::string model;
};

NameParts parse_file_name(const std::string& file_name) {
  NameParts parts;
  const std::string name = lower_case(file_name.substr(0, file_name.rfind(".json")));
  for (const std::string_view word : split(name, '_')) {
    const bool is_run_number = word.starts_with('r') && is_all_digits(word.substr(1));
    if (word.empty() || word == "train" || word == "benchmark" || is_run_number) continue;
    if (const auto platform = parse_enum<Platform>(word); platform && !parts.platform && parts.model.empty()) {
      parts.platform = platform;
    } else if (const auto framework = parse_enum<Framework>(word);
               framework && !parts.framework && parts.model.empty()) {
      parts.framework = framework;
    } else {
      parts.model += (parts.model.empty() ? "" : "_") + std::string(word);
    }
  }
  return parts;
}

bool is_placeholder(const Json& value) {
  if (!value.is_string()) return false;
  const std::string word = lower_case(value.get<std::string>());
  return word.empty() || word == "n/a" || word == "na" || word == "none" || word == "unknown" || word == "null";
}

// Upgrades one older file to version 1. Each step changes one thing and notes it.
class Upgrade {
 public:
  Upgrade(const Json& json, const std::string& file_name, std::vector<std::string>& notes)
      : file_name_(file_name), name_(parse_file_name(file_name)), notes_(notes), json_(json) {}

  Json run() {
    rename_step_times();
    wrap_source();
    for (const char* section :
         {"gpu_info", "training_config", "parallelism_config", "performance_metrics", "memory_metrics"})
      clean_section(section);
    settle_platform();
    settle_framework();
    settle_model();
    settle_strategy();
    settle_device_count();
    settle_performance();
    settle_status();
    json_["schema_version"] = k_schema_version;
    return std::move(json_);
  }

 private:
  Json& section(const char* key) {
    if (!json_.contains(key) || !json_[key].is_object()) json_[key] = Json::object();
    return json_[key];
  }
  template <class... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    notes_.push_back("older file: " + fmt::format(format, std::forward<Args>(args)...));
  }

  void rename_step_times() {
    if (json_.contains("step_times") || !json_.contains("raw_step_times")) return;
    json_["step_times"] = json_["raw_step_times"];
    json_.erase("raw_step_times");
    note("raw_step_times read as step_times");
  }

  void wrap_source() {
    if (!json_.contains("source") || !json_["source"].is_string()) return;
    json_["source"] = Json{{"format", json_["source"]}};
  }

  void clean_section(const char* key) {
    if (!json_.contains(key)) return;
    Json clean = Json::object();
    for (const auto& [name, value] : section(key).items()) {
      if (is_placeholder(value)) {
        if (value != "") note("{}.{} is \"{}\": taken as not known", key, name, value.get<std::string>());
      } else if (!value.is_null()) {
        clean[name] = value;
      }
    }
    json_[key] = clean;
  }

  void settle_platform() {
    const std::string stack = lower_case(section("gpu_info").text_at("software_stack"));
    const std::string written = lower_case(json_.text_at("platform"));
    std::optional<Platform> platform = parse_enum<Platform>(written);
    if (!platform) {
      platform = parse_enum<Platform>(stack);
      if (!platform) platform = name_.platform;
      if (!platform)
        throw Error(Problem{"does not name its platform (nvd, amd, cpu)", file_name_,
                            "add \"platform\": \"nvd\", \"amd\" or \"cpu\" to the file"});
      note("platform not given: taken as {}", enum_name(*platform));
    }
    platform_ = *platform;
    json_["platform"] = std::string(enum_name(*platform));
  }

  void settle_framework() {
    Json& device = section("gpu_info");
    const std::string stack = lower_case(device.text_at("software_stack"));
    std::optional<Framework> framework = parse_enum<Framework>(lower_case(json_.text_at("framework")));
    if (const auto from_stack = parse_enum<Framework>(stack)) {
      const std::string_view usual = platform_ == Platform::nvd ? "cuda" : platform_ == Platform::amd ? "rocm" : "cpu";
      device["software_stack"] = std::string(usual);
      if (!framework) framework = from_stack;
      note("software_stack holds the framework \"{}\": taken as {} with stack {}", stack, enum_name(*from_stack),
           usual);
    }
    if (!framework) framework = framework_from_traces();
    json_.erase("framework");
    if (framework)
      json_["framework"] = std::string(enum_name(*framework));
    else
      note("framework not given");
  }

  std::optional<Framework> framework_from_traces() {
    if (name_.framework) {
      note("framework taken from the file name: {}", enum_name(*name_.framework));
      return name_.framework;
    }
    const std::string format = json_.contains("source") ? lower_case(json_["source"].text_at("format")) : "";
    for (const auto& [framework, name] : EnumNames<Framework>::values) {
      if (name.size() < 5 || format.find(name) == std::string::npos) continue;
      note("framework taken from the source \"{}\": {}", format, enum_name(framework));
      return framework;
    }
    return std::nullopt;
  }

  void settle_model() {
    if (json_.contains("model_info")) return;
    std::string model = lower_case(json_.text_at("model"));
    if (model.empty()) {
      model = name_.model;
      if (!model.empty()) note("model taken from the file name: {}", model);
    }
    json_["model_info"] = Json{{"name", model}};
    note(k_no_shape_note);
  }

  void settle_strategy() {
    const std::string name = section("training_config").text_at("parallel_strategy");
    if (name.empty() || section("parallelism_config").contains("strategy_name")) return;
    json_["parallelism_config"]["strategy_name"] = name;
  }

  void settle_device_count() {
    if (section("gpu_info").contains("device_count") || !section("training_config").contains("num_gpus")) return;
    json_["gpu_info"]["device_count"] = json_["training_config"]["num_gpus"];
    note("device_count not given: taken as num_gpus");
  }

  void settle_performance() {
    if (!json_.contains("performance_metrics")) return;
    Json& metrics = json_["performance_metrics"];
    if (!metrics.contains("total_steps") || !metrics.contains("total_time_seconds")) metrics.erase("total_steps");
  }

  // Older files have no status. It follows from the evidence; `complete` is never a default.
  void settle_status() {
    if (json_.contains("status")) return;
    const size_t steps =
        json_.contains("step_times") && json_["step_times"].is_array() ? json_["step_times"].size() : 0;
    const bool has_rates = section("performance_metrics").contains("tokens_per_second");
    json_["status"] = steps > 0 || has_rates ? "complete" : "failed";
    if (steps == 0 && !has_rates) json_["status_reason"] = "no step was recorded";
    note("status not given: judged by the steps recorded ({})", steps);
  }

  std::string file_name_;
  NameParts name_;
  std::vector<std::string>& notes_;
  Json json_;
  Platform platform_ = Platform::cpu;
};

void require_result(const Json& json, const std::string& file_name) {
  const auto has = [&](const char* key) { return json.is_object() && json.contains(key); };
  const bool says_what = has("platform") || has("gpu_info");
  const bool says_how_fast = has("step_times") || has("raw_step_times") || has("performance_metrics");
  if (says_what && says_how_fast) return;
  throw Error(Problem{"is not a benchmark result: it has no platform or device with step times or performance figures",
                      file_name, ""});
}

// Fields that our results always have: a default would pass for a fact.
void require_facts(const Json& json, const std::string& file_name) {
  for (const char* key : {"platform", "status"})
    if (!json.contains(key))
      throw Error(Problem{fmt::format("has a schema_version but no {}", key), file_name,
                          "the file was truncated or edited: copy it from the run again"});
}

}  // namespace

Json upgrade_result(const Json& json, const std::string& file_name, std::vector<std::string>& notes) {
  require_result(json, file_name);
  const auto version = json.find("schema_version");
  if (version == nullptr) return Upgrade(json, file_name, notes).run();
  require_facts(json, file_name);
  if (version->is_number_integer() && version->get<int64_t>() > k_schema_version)
    notes.push_back(
        fmt::format("written with schema version {}; this program knows version {} and ignores unknown fields",
                    version->get<int64_t>(), k_schema_version));
  const Json* info = json.find("model_info");
  const Json* shape = info != nullptr && info->is_object() ? info->find("shape") : nullptr;
  if (shape == nullptr || !has_flat_experts(*shape)) return json;
  Json upgraded = json;
  upgraded["model_info"]["shape"] = with_experts(*shape);
  return upgraded;
}

}  // namespace tprimat

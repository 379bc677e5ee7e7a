#include "report/html/settings.h"

#include <algorithm>

#include "text/json_fields.h"

namespace tprimat::results {
namespace {

using Settings = std::map<std::string, std::string>;

void add_settings(const std::string& prefix, const Json& object, Settings& settings) {
  for (const auto& [key, value] : object.items())
    if (!value.is_null() && value != "") settings[prefix + key] = print_json_bare(value);
}

Settings list_settings(const RunResult& run) {
  Settings settings;
  add_settings("device: ", to_json(run.gpu_info), settings);
  add_settings("training: ", to_json(run.training_config), settings);
  add_settings("layout: ", to_json(run.parallelism_config), settings);
  add_settings("environment: ", to_json(run.environment), settings);
  if (run.effective_config) add_settings("effective: ", to_json(*run.effective_config), settings);
  if (run.model_info.shape) add_settings("model: ", to_json(*run.model_info.shape), settings);
  const auto add = [&](const char* key, const std::optional<std::string>& value) {
    if (value && !value->empty()) settings[key] = *value;
  };
  add("framework version", run.framework_version);
  add("dataset", run.dataset);
  add("configuration hash", run.config_hash);
  add("started", run.timestamp);
  return settings;
}

Settings list_settings(const Contender& contender) {
  Settings all = list_settings(contender.first());
  for (size_t i = 1; i < contender.runs.size(); ++i)
    for (const auto& [key, value] : list_settings(contender.runs[i].result)) {
      std::string& known = all[key];
      if (known.empty())
        known = value;
      else if ((" | " + known + " | ").find(" | " + value + " | ") == std::string::npos)
        known += " | " + value;
    }
  return all;
}

Json setting_to_json(const std::string& key, const std::vector<Settings>& all) {
  std::vector<std::string> values;
  std::vector<int> of;
  for (const Settings& each : all) {
    const auto found = each.find(key);
    if (found == each.end()) {
      of.push_back(-1);
      continue;
    }
    const auto known = std::find(values.begin(), values.end(), found->second);
    of.push_back(static_cast<int>(known - values.begin()));
    if (known == values.end()) values.push_back(found->second);
  }
  Json json = {{"key", key}, {"values", values}};
  if (std::any_of(of.begin(), of.end(), [](int place) { return place != 0; })) json["of"] = of;
  return json;
}

}  // namespace

Json settings_to_json(const ModelGroup& group) {
  std::vector<Settings> all;
  std::map<std::string, int> keys;
  for (const Contender& contender : group.contenders) {
    all.push_back(list_settings(contender));
    for (const auto& [key, value] : all.back()) ++keys[key];
  }
  Json list = Json::array();
  for (const auto& [key, count] : keys) list.push_back(setting_to_json(key, all));
  return list;
}

}  // namespace tprimat::results

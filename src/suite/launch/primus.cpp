#include "launch/primus.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "launch/megatron.h"

namespace tprimat::suite {
namespace {

int64_t devices_per_node(const LaunchRequest& request) { return request.spec.parallel.ranks() / request.launch.nodes; }

// "0,1,2"
std::string list_first_devices(int64_t count) {
  std::string list;
  for (int64_t device = 0; device < count; ++device) list += (device > 0 ? "," : "") + std::to_string(device);
  return list;
}

// In YAML 1.1 a float needs a point: PyYAML reads "1e-05" as a string.
std::string write_yaml_number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".n") != std::string::npos) return text;
  const size_t exponent = std::min(text.find('e'), text.size());
  return text.insert(exponent, ".0");
}

// A string as in JSON, which escapes characters that PyYAML rejects and line breaks of YAML alone (U+0085, U+2028).
std::string write_yaml_text(const std::string& text) { return print_json_line(Json(text)); }

std::string write_yaml_value(const Json& value) {
  return value.is_number_float() ? write_yaml_number(value.get<double>()) : print_json_line(value);
}

void write_yaml_members(const Json& members, const std::string& indent, std::string& text) {
  for (const auto& [key, value] : members.items()) {
    if (value.is_object()) {
      text += fmt::format("{}{}:\n", indent, key);
      write_yaml_members(value, indent + "  ", text);
    } else {
      text += fmt::format("{}{}: {}\n", indent, key, write_yaml_value(value));
    }
  }
}

}  // namespace

std::string place_of_primus(const Checkout& checkout) {
  return checkout.installation.empty() ? "/workspace/Primus" : checkout.installation;
}

std::string primus_config_path(const Checkout& checkout, const std::string& stated) {
  const std::filesystem::path root = place_of_primus(checkout), path = stated;
  return (path.has_parent_path() ? root / path : root / checkout.config_dir / path).lexically_normal();
}

std::string write_primus_file(const LaunchRequest& request, const PrimusModule& module, const std::string& base) {
  std::string text;
  if (!base.empty()) text = fmt::format("extends: [{}]\n", write_yaml_text(base));
  text += fmt::format(
      "work_group: tprimat\nuser_name: tprimat\nexp_name: {}\nworkspace: {}\n"
      "modules:\n  pre_trainer:\n    framework: {}\n    config: {}\n    model: {}\n    overrides:\n",
      write_yaml_text(request.spec.model.name), write_yaml_text(request.paths.folder + "/primus"), module.framework,
      module.config, module.model);
  write_yaml_members(module.overrides, "      ", text);
  return text;
}

TrainProgram start_primus(const LaunchRequest& request, const Checkout& checkout) {
  TrainProgram program;
  program.start = RankStart::per_node;
  program.working_directory = place_of_primus(checkout);  // its scripts' paths are relative to it
  program.environment = {{"GPUS_PER_NODE", std::to_string(devices_per_node(request))},
                         {"DATA_PATH", request.paths.folder + "/data"},
                         {"HF_HUB_OFFLINE", "1"},
                         {"PYTHONUNBUFFERED", "1"}};
  add_attention_variables(program.environment, request.settings.flash_attention);
  add_schedule_deviation(program.deviations, request.spec.optimizer);
  return program;
}

void add_device_limit(Refusals& refusals, const LaunchRequest& request) {
  const std::string devices = list_first_devices(devices_per_node(request));
  refusals.add_if(request.settings.visible_devices.value_or(devices) != devices,
                  fmt::format("always trains on devices {}: its script sets HIP_VISIBLE_DEVICES", devices),
                  "leave visible_devices out", "platform_optimizations.amd.visible_devices");
}

void add_attention_variables(std::map<std::string, std::string>& variables, const std::optional<bool>& flash) {
  if (!flash) return;
  variables["NVTE_FLASH_ATTN"] = variables["NVTE_FUSED_ATTN"] = *flash ? "1" : "0";
  if (!*flash) variables["NVTE_UNFUSED_ATTN"] = "1";
}

}  // namespace tprimat::suite

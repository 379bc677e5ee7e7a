#include "launch/prim.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "launch/checkout_revision.h"
#include "launch/megatron_arguments.h"
#include "launch/megatron_core_limits.h"
#include "launch/primus_experiment.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_primus_script = "examples/run_pretrain.sh";

std::string primus_script(const Checkout& checkout) {
  return checkout.run_script.empty() ? std::string(k_primus_script) : checkout.run_script;
}

bool has_all_for_training(const std::string& split) {
  const size_t comma = split.find(',');
  return comma == std::string::npos || split.find_first_of("123456789", comma) == std::string::npos;
}

// "0,1,2": the devices that its script takes whatever it is told.
std::string list_first_devices(int64_t count) {
  std::string list;
  for (int64_t device = 0; device < count; ++device) list += (device > 0 ? "," : "") + std::to_string(device);
  return list;
}

// Transformer Engine takes its attention from the environment; Megatron-LM wants it to agree with attention_backend.
void add_attention_variables(std::map<std::string, std::string>& variables, const std::optional<bool>& flash) {
  if (!flash) return;
  variables["NVTE_FLASH_ATTN"] = variables["NVTE_FUSED_ATTN"] = *flash ? "1" : "0";
  if (!*flash) variables["NVTE_UNFUSED_ATTN"] = "1";
}

int64_t devices_per_node(const LaunchRequest& request) { return request.spec.parallel.ranks() / request.launch.nodes; }

void check_primus_settings(const LaunchRequest& request, std::vector<Problem>& problems) {
  const PlatformSettings& settings = request.settings;
  const std::string devices = list_first_devices(devices_per_node(request));
  if (settings.visible_devices && *settings.visible_devices != devices)
    problems.push_back(
        {fmt::format("the framework 'prim' always trains on devices {}: its script sets HIP_VISIBLE_DEVICES", devices),
         "platform_optimizations.amd.visible_devices", "leave visible_devices out"});
  if (settings.cuda_device_max_connections && *settings.cuda_device_max_connections != 1)
    problems.push_back({"the framework 'prim' always trains with CUDA_DEVICE_MAX_CONNECTIONS=1: its trainer sets it",
                        "platform_optimizations.amd.cuda_device_max_connections",
                        "leave cuda_device_max_connections out"});
  if (settings.hsa_enable_sdma && !*settings.hsa_enable_sdma)
    problems.push_back({"the framework 'prim' always trains with HSA_ENABLE_SDMA=1: its script sets it",
                        "platform_optimizations.amd.hsa_enable_sdma", "leave hsa_enable_sdma out"});
}

void require_primus_can(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  std::vector<Problem> problems = find_megatron_core_limits(Framework::prim, spec);
  if (spec.precision == Precision::tf32)
    problems.push_back({"the framework 'prim' does not train in tf32", "", "choose fp32, bf16, fp16 or fp8"});
  if (has_short_window(spec))
    problems.push_back({fmt::format("the framework 'prim' does not support a sliding window, and the model's window of "
                                    "{} is shorter than the sequence of {}",
                                    *spec.model.sliding_window, spec.sequence_length),
                        "", "choose a sequence_length of at most the window"});
  if (spec.model.rope_scaling && *spec.model.rope_scaling != RopeScaling{})
    problems.push_back(
        {"the framework 'prim' supports only the rope_scaling of Llama 3.1 with factor 8: Megatron-LM passes no other "
         "to its model",
         "", "use that one, or none"});
  if (!spec.data.is_synthetic() && !has_all_for_training(spec.data.split))
    problems.push_back(
        {fmt::format("the framework 'prim' trains on the whole data set, but the split is {}", spec.data.split), "",
         "set the split to 100,0,0"});
  if (!spec.data.is_synthetic() && spec.data.dataset.find(' ') != std::string::npos)
    problems.push_back(
        {fmt::format("the framework 'prim' splits the data set path '{}' at its spaces", spec.data.dataset), "",
         "use a path without spaces"});
  check_primus_settings(request, problems);
  throw_if_any(std::move(problems));
}

}  // namespace

std::optional<Installation> find_prim(const Checkout& checkout) {
  const fs::path folder = place_of_primus(checkout);
  std::error_code failure;
  if (!fs::exists(folder / "primus", failure) || !fs::exists(folder / primus_script(checkout), failure))
    return std::nullopt;
  return Installation{find_checkout_revision(folder).value_or("not known"), folder.string()};
}

TrainProgram plan_prim(const LaunchRequest& request) {
  require_primus_can(request);
  const std::string& folder = request.paths.folder;
  TrainProgram program;
  program.arguments = {"bash", primus_script(request.checkout)};
  program.start = RankStart::per_node;
  program.working_directory = place_of_primus(request.checkout);  // the script's own paths start here
  const std::string experiment = folder + "/primus.yaml";
  program.environment = {{"EXP", experiment},
                         {"GPUS_PER_NODE", std::to_string(devices_per_node(request))},
                         {"DATA_PATH", folder + "/data"},
                         {"TRAIN_LOG", folder + "/primus.log"},
                         {"HF_HUB_OFFLINE", "1"},
                         {"PYTHONUNBUFFERED", "1"}};
  add_attention_variables(program.environment, request.settings.flash_attention);
  program.files = {{experiment, write_primus_experiment(request)}};
  add_schedule_deviation(program.deviations, request.spec.optimizer);
  if (request.spec.data.is_synthetic()) add_mock_data_deviation(program.deviations);
  add_training_only_deviations(program, request.spec);
  return program;
}

}  // namespace tprimat::suite

#include "launch/nemo.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "launch/megatron_core_limits.h"
#include "launch/python_framework.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_nemo_package = "megatron_bridge";  // as its dist-info spells megatron-bridge

// /opt/venv for /opt/venv/bin in PATH, where that has a python3.
std::vector<fs::path> list_prefixes_in_path() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "";
  std::vector<fs::path> prefixes;
  std::error_code failure;
  while (!rest.empty()) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const fs::path folder = rest.substr(0, colon);
    if (folder.filename() == "bin" && fs::exists(folder / "python3", failure)) prefixes.push_back(folder.parent_path());
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return prefixes;
}

std::vector<fs::path> list_nemo_prefixes(const Checkout& checkout) {
  if (!checkout.installation.empty()) return {checkout.installation};
  std::vector<fs::path> prefixes = list_prefixes_in_path();
  prefixes.insert(prefixes.begin(), python_environments() / enum_name(Framework::nemo));
  return prefixes;
}

// The first of the prefixes that has the package; where none has, the first of all, for a plan that is only shown.
fs::path choose_nemo_prefix(const Checkout& checkout) {
  const std::vector<fs::path> prefixes = list_nemo_prefixes(checkout);
  for (const fs::path& prefix : prefixes)
    if (find_package_version(prefix, k_nemo_package)) return prefix;
  return prefixes.front();
}

void require_nemo_can(const TrainSpec& spec) {
  std::vector<Problem> problems = find_megatron_core_limits(Framework::nemo, spec);
  if (spec.precision == Precision::fp32)  // CUBLAS_COMPUTE_32F_FAST_TF32 in transformer_engine/common/gemm
    problems.push_back(
        {"the framework 'nemo' does not train in fp32: Transformer Engine multiplies such matrices in TF32", "",
         "choose tf32, bf16, fp16 or fp8"});
  throw_if_any(std::move(problems));
}

// What the adapter is told beside the experiment; what is absent is not said.
Json list_nemo_settings(const LaunchRequest& request) {
  Json settings = Json::object();
  if (!request.model_notes.nemo_recipe.empty()) settings["recipe"] = request.model_notes.nemo_recipe;
  const PlatformSettings& platform = request.settings;
  if (platform.flash_attention) settings["flash_attention"] = *platform.flash_attention;
  if (request.spec.precision == Precision::fp8) {
    if (platform.fp8_hybrid) settings["fp8_hybrid"] = *platform.fp8_hybrid;
    if (platform.fp8_param) settings["fp8_param"] = *platform.fp8_param;
  }
  return settings;
}

}  // namespace

std::optional<Installation> find_nemo(const Checkout& checkout) {
  const fs::path prefix = choose_nemo_prefix(checkout);
  const auto version = find_package_version(prefix, k_nemo_package);
  if (!version) return std::nullopt;
  return Installation{*version, prefix.string()};
}

TrainProgram plan_nemo(const LaunchRequest& request) {
  require_nemo_can(request.spec);
  const std::string& folder = request.paths.folder;
  TrainProgram program;
  program.arguments = {folder + "/adapter/train_nemo.py", "--spec", folder + "/train_spec.json"};
  program.start = RankStart::torchrun;
  program.python = (choose_nemo_prefix(request.checkout) / "bin" / "python3").string();
  program.steps_path = folder + "/steps.jsonl";
  program.environment = {{"TPRIMAT_STEPS", program.steps_path},
                         {"TPRIMAT_PROGRAM", request.own_program},
                         {"HF_HUB_OFFLINE", "1"},
                         {"PYTHONUNBUFFERED", "1"}};
  // Megatron Core's order of communication and computation on GPUs before Blackwell rests on one queue.
  if (request.spec.parallel.tensor > 1 || request.spec.parallel.context > 1)
    program.environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "1";
  program.files = list_adapter_files("train_nemo.py", request);
  program.files.push_back({folder + "/nemo_settings.json", print_json(list_nemo_settings(request))});
  add_training_only_deviations(program, request.spec);
  return program;
}

}  // namespace tprimat::suite

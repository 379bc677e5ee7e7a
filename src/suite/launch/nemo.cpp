
#include <filesystem>

#include "base/error.h"
#include "launch/installed.h"
#include "launch/megatron.h"
#include "launch/python_framework.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_nemo_package = "megatron_bridge";  // as its dist-info spells megatron-bridge

// Besides our own environment: /opt/venv for /opt/venv/bin in PATH, if that has a python3.
std::vector<fs::path> list_nemo_prefixes(const Checkout& checkout) {
  if (!checkout.installation.empty()) return {checkout.installation};
  std::vector<fs::path> prefixes = {python_environments() / enum_name(Framework::nemo)};
  std::error_code failure;
  for (const fs::path folder : folders_in_path())
    if (folder.filename() == "bin" && fs::exists(folder / "python3", failure)) prefixes.push_back(folder.parent_path());
  return prefixes;
}

// The first prefix that has the package; if none has, the first, for a plan that is only shown.
fs::path choose_nemo_prefix(const Checkout& checkout) {
  const std::vector<fs::path> prefixes = list_nemo_prefixes(checkout);
  for (const fs::path& prefix : prefixes)
    if (find_package_version(prefix, k_nemo_package)) return prefix;
  return prefixes.front();
}

void require_nemo_can(const TrainSpec& spec) {
  Refusals refusals(Framework::nemo);
  add_megatron_core_limits(refusals, Framework::nemo, spec);
  refusals.add_if(spec.precision == Precision::fp32,  // CUBLAS_COMPUTE_32F_FAST_TF32 in transformer_engine/common/gemm
                  "does not train in fp32: Transformer Engine multiplies such matrices in TF32",
                  "choose tf32, bf16, fp16 or fp8");
  refusals.throw_if_any();
}

// Arguments of the adapter beside the experiment; absent ones are omitted.
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

std::optional<Installation> find_nemo(const Checkout& checkout) {
  const fs::path prefix = choose_nemo_prefix(checkout);
  const auto version = find_package_version(prefix, k_nemo_package);
  if (!version) return std::nullopt;
  return Installation{*version, prefix.string()};
}

TrainProgram plan_nemo(const LaunchRequest& request) {
  require_nemo_can(request.spec);
  TrainProgram program = run_adapter("train_nemo.py", request);
  program.python = (choose_nemo_prefix(request.checkout) / "bin" / "python3").string();
  // On GPUs before Blackwell, Megatron Core orders communication and computation by a single hardware queue.
  if (request.spec.parallel.tensor > 1 || request.spec.parallel.context > 1)
    program.environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "1";
  program.files.push_back({request.paths.folder + "/nemo_settings.json", print_json(list_nemo_settings(request))});
  return program;
}

}  // namespace

// NVIDIA NeMo as it is since 2025: Megatron-Bridge, driven by frameworks/train_nemo.py under torchrun. The Python that
// has the package megatron-bridge: `paths.nemo.installation`, the environment of `frameworks/setup.sh nemo`, or the
// python3 in PATH (NVIDIA's NeMo container), in this order.
FrameworkModule nemo_module() {
  FrameworkModule module = {Framework::nemo, "NVIDIA NeMo (Megatron-Bridge)",
                            {Platform::nvd}, find_nemo,
                            plan_nemo,       "run in NVIDIA's NeMo container, or run frameworks/setup.sh nemo",
                            "nemo",          {Profiler::nsys, Profiler::torch}};
  module.is_environment = true;
  module.checked = {"Megatron-Bridge", {"0.3.1"}, "Megatron Core 0.16.1"};  // its configuration
  return module;
}

}  // namespace tprimat::suite

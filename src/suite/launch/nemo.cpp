#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "launch/bridge_experts.h"
#include "launch/installed.h"
#include "launch/megatron.h"
#include "launch/nemo_in_primus.h"
#include "launch/primus.h"
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

// The first prefix that has the package.
std::optional<Installation> find_package(const Checkout& checkout) {
  for (const fs::path& prefix : list_nemo_prefixes(checkout))
    if (const auto version = find_package_version(prefix, k_nemo_package))
      return Installation{*version, prefix.string()};
  return std::nullopt;
}

// Whether a version is 0.3.0 or later: our adapter needs its callbacks, which 0.3.0's previews ("0.3.0rc0") lack.
bool has_callbacks(std::string_view version) {
  std::array<int64_t, 3> parts{};
  const char *at = version.data(), *const end = at + version.size();
  for (int64_t& part : parts) {
    const auto [rest, failure] = std::from_chars(at, end, part);
    if (failure != std::errc()) break;
    at = rest;
    if (at == end || *at != '.') break;
    ++at;
  }
  constexpr std::array<int64_t, 3> k_first = {0, 3, 0};
  const bool is_preview = at != end && std::string_view("abrcd").find(*at) != std::string_view::npos;
  return parts > k_first || (parts == k_first && !is_preview);
}

// How NeMo is started.
enum class Way {
  adapter,  // our adapter, in a Python that has Megatron-Bridge
  primus,   // Primus' back end megatron_bridge
  none
};

// A container's image cannot be searched: what the configuration states counts, and else the way that AMD maintains.
Way choose_way(const LaunchRequest& request) {
  const Checkout& checkout = request.checkout;
  if (request.platform != Platform::amd) return Way::adapter;
  if (request.launch.in_container()) return checkout.installation.empty() ? Way::primus : Way::adapter;
  const auto package = find_package(checkout);
  if (package && has_callbacks(package->version)) return Way::adapter;
  return !package || find_nemo_in_primus(checkout) ? Way::primus : Way::none;
}

void add_precision_limits(Refusals& refusals, const LaunchRequest& request) {
  const Precision precision = request.spec.precision;
  const bool on_amd = request.platform == Platform::amd;
  refusals.add_if(!on_amd && precision == Precision::fp32,  // CUBLAS_COMPUTE_32F_FAST_TF32 in transformer_engine/common
                  "does not train in fp32: Transformer Engine multiplies such matrices in TF32",
                  "choose tf32, bf16, fp16 or fp8");
  refusals.add_if(on_amd && precision == Precision::tf32,  // HIPBLAS_COMPUTE_32F in rocm_gemm.cu
                  "does not train in tf32 on AMD: Transformer Engine multiplies fp32 exactly there",
                  "choose fp32, bf16, fp16 or fp8");
}

void require_nemo_can(const LaunchRequest& request, Way way) {
  Refusals refusals(Framework::nemo);
  add_megatron_core_limits(refusals, Framework::nemo, request.spec);
  add_bridge_limits(refusals, request.spec, way == Way::primus);
  add_precision_limits(refusals, request);
  if (way == Way::primus) add_primus_limits(refusals, request);
  if (way == Way::none) {
    const Installation old = find_package(request.checkout).value_or(Installation{});
    refusals.add_if(true,
                    fmt::format("needs Megatron-Bridge 0.3 or later on AMD, and {} has {}", old.place, old.version),
                    "install a later one there, or set PRIMUS_PATH to a checkout of Primus v26.5 or later");
  }
  refusals.throw_if_any();
}

// Arguments of the adapter beside the experiment; absent ones are omitted. On AMD, which fused kernel of attention
// there is differs between images, so that Transformer Engine chooses.
Json list_nemo_settings(const LaunchRequest& request) {
  Json settings = Json::object();
  if (!request.model_notes.nemo_recipe.empty()) settings["recipe"] = request.model_notes.nemo_recipe;
  const PlatformSettings& platform = request.settings;
  const bool chooses = request.platform == Platform::amd && platform.flash_attention.value_or(true);
  if (platform.flash_attention && !chooses) settings["flash_attention"] = *platform.flash_attention;
  if (request.spec.precision == Precision::fp8) {
    if (platform.fp8_hybrid) settings["fp8_hybrid"] = *platform.fp8_hybrid;
    if (platform.fp8_param) settings["fp8_param"] = *platform.fp8_param;
  }
  return settings;
}

std::optional<Installation> find_nemo(const Checkout& checkout) {
  auto package = find_package(checkout);
  const bool on_amd = checkout.primus.has_value();
  if (!on_amd || (package && has_callbacks(package->version))) return package;
  return find_nemo_in_primus(checkout);
}

TrainProgram plan_adapter(const LaunchRequest& request) {
  TrainProgram program = run_adapter("train_nemo.py", request);
  const auto package = find_package(request.checkout);
  const fs::path prefix = package ? fs::path(package->place) : list_nemo_prefixes(request.checkout).front();
  program.python = (prefix / "bin" / "python3").string();
  // On GPUs before Blackwell, Megatron Core orders communication and computation by a single hardware queue.
  if (request.spec.parallel.tensor > 1 || request.spec.parallel.context > 1)
    program.environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "1";
  if (request.platform == Platform::amd) add_attention_variables(program.environment, request.settings.flash_attention);
  program.files.push_back({request.paths.folder + "/nemo_settings.json", print_json(list_nemo_settings(request))});
  return program;
}

TrainProgram plan_nemo(const LaunchRequest& request) {
  const Way way = choose_way(request);
  require_nemo_can(request, way);
  if (way == Way::adapter) return plan_adapter(request);
  TrainProgram program = plan_nemo_in_primus(request);
  if (!request.launch.in_container() && !find_nemo_in_primus(request.checkout))
    program.remarks.push_back(fmt::format(
        "neither a Python with Megatron-Bridge nor Primus v26.5 or later in {} was found here: planned by Primus, the "
        "way that AMD maintains",
        program.working_directory));
  return program;
}

}  // namespace

// NVIDIA NeMo as it is since 2025: Megatron-Bridge, driven by frameworks/train_nemo.py under torchrun. The Python that
// has the package megatron-bridge: `paths.nemo.installation`, the environment of `frameworks/setup.sh nemo`, or the
// python3 in PATH (NVIDIA's NeMo container), in this order. On AMD, where none has 0.3 or later, by Primus.
FrameworkModule nemo_module() {
  FrameworkModule module = {
      Framework::nemo,
      "NVIDIA NeMo (Megatron-Bridge)",
      {Platform::nvd, Platform::amd},
      find_nemo,
      plan_nemo,
      "run in NVIDIA's NeMo container, or run tprimat doctor --install nemo; on AMD, set PRIMUS_PATH to a checkout of "
      "Primus v26.5 or later, or install Megatron-Bridge 0.3 or later",
      "nemo",
      {Profiler::nsys, Profiler::torch}};
  module.is_environment = true;
  // Their configurations; the second is in Primus.
  module.checked = {"Megatron-Bridge", {"0.3.1", "0.3.0rc0"}, "Megatron Core 0.16.1"};
  module.trains_in = [](Precision precision, Platform platform) {
    return precision != (platform == Platform::amd ? Precision::tf32 : Precision::fp32);
  };
  return module;
}

}  // namespace tprimat::suite

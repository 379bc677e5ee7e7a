#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "launch/installed.h"
#include "launch/megatron.h"
#include "launch/primus.h"
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

// Since July 2026 its script keeps the HSA_ENABLE_SDMA that it is called with.
bool keeps_sdma(const Checkout& checkout) {
  try {
    const fs::path script = fs::path(place_of_primus(checkout)) / primus_script(checkout);
    return read_file(script).find("HSA_ENABLE_SDMA:-") != std::string::npos;
  } catch (const Error&) {  // not here
    return false;
  }
}

void add_script_limits(Refusals& refusals, const LaunchRequest& request) {
  const PlatformSettings& settings = request.settings;
  add_device_limit(refusals, request);
  refusals.add_if(settings.cuda_device_max_connections.value_or(1) != 1,
                  "always trains with CUDA_DEVICE_MAX_CONNECTIONS=1: its trainer sets it",
                  "leave cuda_device_max_connections out", "platform_optimizations.amd.cuda_device_max_connections");
  refusals.add_if(!settings.hsa_enable_sdma.value_or(true) && !keeps_sdma(request.checkout),
                  "always trains with HSA_ENABLE_SDMA=1: its script sets it",
                  "leave hsa_enable_sdma out and HSA_ENABLE_SDMA unset, or update Primus",
                  "platform_optimizations.amd.hsa_enable_sdma");
}

// What Megatron-LM has an argument for, and the experiment files of Primus no key.
void add_key_limits(Refusals& refusals, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const auto refuse = [&](bool asked, const char* what, const char* hint) {
    refusals.add_if(asked, fmt::format("has no key for {}", what), hint);
  };
  refuse(model.attention_sinks.value_or(false), "attention sinks", "choose a model without attention_sinks");
  refuse(model.prediction_layers.value_or(0) > 1 && model.shared_prediction.value_or(false),
         "layers that predict further tokens (MTP) with one shared block", "leave shared_prediction out of the model");
  if (!model.experts) return;
  refuse(model.experts->shared_gate, "a gate of the shared experts", "choose the framework mega");
  refuse(model.experts->latent_size.has_value(), "experts with latent_size",
         "choose the framework mega, or leave latent_size out of the model");
  refuse(spec.dispatcher == Dispatcher::hybridep, "the dispatcher hybridep",
         "set training.dispatcher to alltoall or deepep");
}

void require_primus_can(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  const DataSpec& data = spec.data;
  Refusals refusals(Framework::prim);
  add_megatron_core_limits(refusals, Framework::prim, spec);
  add_key_limits(refusals, spec);
  refusals.add_if(spec.precision == Precision::tf32, "does not train in tf32", "choose fp32, bf16, fp16 or fp8");
  refusals.add_if(has_short_window(spec),
                  fmt::format("does not support a sliding window, and the model's window of {} is shorter than the "
                              "sequence of {}",
                              spec.model.sliding_window.value_or(0), spec.sequence_length),
                  fmt::format("set training.data.seq_length to {} or less, or choose the framework mega",
                              spec.model.sliding_window.value_or(0)));
  refusals.add_if(
      !spec.model.latent_attention && spec.model.rope_scaling.value_or(RopeScaling{}) != RopeScaling{},
      "supports only the rope_scaling of Llama 3.1 with factor 8: Megatron-LM passes no other to its model",
      "set type: llama3 and factor: 8, leave rope_scaling out, or choose the framework native, tran, fsdp or deep");
  refusals.add_if(!data.is_synthetic() && !has_all_for_training(data.split),
                  fmt::format("trains on the whole data set, but the split is {}", data.split),
                  "set the data set's split to 100,0,0, or choose the framework mega");
  refusals.add_if(!data.is_synthetic() && data.dataset.find(' ') != std::string::npos,
                  fmt::format("splits the data set path '{}' at its spaces", data.dataset),
                  "move it, or make a symbolic link to it, under a path without spaces");
  add_script_limits(refusals, request);
  refusals.throw_if_any();
}

std::optional<Installation> find_prim(const Checkout& checkout) {
  const fs::path folder = place_of_primus(checkout);
  std::error_code failure;
  if (!fs::exists(folder / "primus", failure) || !fs::exists(folder / primus_script(checkout), failure))
    return std::nullopt;
  return Installation{find_checkout_revision(folder).value_or(std::string(k_unknown_version)), folder.string()};
}

TrainProgram plan_prim(const LaunchRequest& asked) {
  const LaunchRequest request = with_absolute_dataset(asked);
  require_primus_can(request);
  const std::string& folder = request.paths.folder;
  const std::string experiment = folder + "/primus.yaml";
  TrainProgram program = start_primus(request, request.checkout);
  program.arguments = {"bash", primus_script(request.checkout)};
  program.environment["EXP"] = experiment;
  program.environment["TRAIN_LOG"] = folder + "/primus.log";
  program.files = {{experiment, write_primus_experiment(request)}};
  program.has_further_arguments = true;
  if (request.spec.data.is_synthetic()) add_mock_data_deviation(program.deviations);
  add_training_only_deviations(program, request.spec);
  return program;
}

}  // namespace

// AMD Primus, its Megatron back end: a checkout (`paths.primus.installation`, PRIMUS_PATH) whose start script runs the
// experiment file that we write. Its steps are read from its log.
FrameworkModule prim_module() {
  FrameworkModule module = {
      Framework::prim,
      "AMD Primus (Megatron)",
      {Platform::amd},
      find_prim,
      plan_prim,
      "git clone --recurse-submodules https://github.com/AMD-AGI/Primus, and set PRIMUS_PATH to its folder",
      "primus",
      {Profiler::torch, Profiler::rocprofv3}};
  module.unmarked = {Profiler::rocprofv3};
  module.takes_arguments = true;
  module.checked = {"Primus", {"93acc72", "85c51c0", "711b97c", "0249dae"}};  // the keys of its experiment file
  module.trains_in = [](Precision precision, Platform) { return precision != Precision::tf32; };
  return module;
}

}  // namespace tprimat::suite

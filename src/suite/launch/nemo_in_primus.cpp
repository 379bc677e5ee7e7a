#include "launch/nemo_in_primus.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "launch/bridge_settings.h"
#include "launch/installed.h"
#include "launch/megatron.h"
#include "launch/primus.h"
#include "launch/python_framework.h"
#include "text/format.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

Checkout primus_of(const Checkout& checkout) { return {checkout.primus.value_or(""), "", ""}; }

bool is_here(const fs::path& path) {
  std::error_code failure;
  return fs::exists(path, failure);
}

// Before v26.5, Primus looks for recipes in two packages only: its own and Megatron-Bridge's.
bool loads_any_recipe(const fs::path& backend) {
  std::error_code failure;
  if (!fs::is_regular_file(backend / "config_utils.py", failure)) return false;  // a pipe would wait
  std::ifstream file(backend / "config_utils.py");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str().find("importlib.import_module(recipe)") != std::string::npos;
}

std::string_view name_of_precision(Precision precision) {
  switch (precision) {
    case Precision::fp16: return "fp16_mixed";
    case Precision::fp8: return "bf16_with_fp8_delayed_scaling_mixed";
    case Precision::fp32: return "fp32";
    default: return "bf16_mixed";
  }
}

// `recipe` and `flavor` name a function of ours, which takes the rest as it stands. Primus itself reads a few of these:
// `seq_length` for its rate of tokens, `mock` so that it prepares no data, and those of the log and of checkpoints.
Json list_overrides(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  const std::string& recipe = request.model_notes.nemo_recipe;
  return {{"recipe", "tprimat_adapter.primus_recipe"},
          {"flavor", "pretrain_config"},
          {"hf_path", nullptr},
          {"dataset", nullptr},
          {"stderr_sink_level", "DEBUG"},  // with the configuration, which is compared with the one asked for
          {"enable_primus_turbo", false},
          {"mock", true},
          {"seq_length", spec.sequence_length},
          {"log_interval", 1},
          {"eval_iters", 0},
          {"eval_interval", spec.steps + 1},
          {"skip_save", true},
          {"precision_config", name_of_precision(spec.precision)},
          {"nemo_recipe", recipe.empty() ? Json() : Json(recipe)},
          {"data",
           {{"dataset", spec.data.dataset},
            {"split", spec.data.split},
            {"train_spec", request.paths.folder + "/train_spec.json"}}},
          {"settings", list_bridge_settings(request)}};
}

// Our recipe is found beside whatever is already in PYTHONPATH.
std::string write_start_script(const LaunchRequest& request, const std::string& experiment) {
  const std::string& folder = request.paths.folder;
  return fmt::format(
      "#!/bin/sh\n# Starts the ranks of one node; tprimat's recipe becomes importable.\n"
      "export PYTHONPATH={}${{PYTHONPATH:+:$PYTHONPATH}}\n"
      "exec bash runner/primus-cli direct --log_file {} -- train pretrain --config {}\n",
      quote_shell(folder + "/adapter"), quote_shell(folder + "/primus.log"), quote_shell(experiment));
}

}  // namespace

std::optional<Installation> find_nemo_in_primus(const Checkout& checkout) {
  const fs::path folder = place_of_primus(primus_of(checkout));
  const fs::path backend = folder / "primus/backends/megatron_bridge";
  if (!is_here(folder / "runner/primus-cli") || !is_here(backend / "megatron_bridge_pretrain_trainer.py") ||
      !loads_any_recipe(backend))
    return std::nullopt;
  const fs::path bridge = folder / "third_party/Megatron-Bridge/src/megatron/bridge/package_info.py";
  return Installation{
      fmt::format("{} in Primus {}", read_package_version(bridge).value_or(std::string(k_unknown_version)),
                  find_checkout_revision(folder).value_or(std::string(k_unknown_version))),
      folder.string()};
}

void add_primus_limits(Refusals& refusals, const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  refusals.add_if(spec.parallel.pipeline > 1,
                  "has no pipeline stages where Primus starts it: Primus logs rank 0, which does not know the loss",
                  "choose a strategy with PP 1");
  const auto& scaling = spec.model.rope_scaling;
  refusals.add_if(scaling && scaling->type == RopeScalingKind::llama3,
                  "has no llama3 rope_scaling where Primus starts it: Primus' Megatron-Bridge 0.3.0rc0 lacks it",
                  "leave rope_scaling out, or install Megatron-Bridge 0.3 or later");
  refusals.add_if(request.profile.has_value(), "cannot be profiled where Primus starts it",
                  "install Megatron-Bridge 0.3 or later, or profile the framework prim");
  refusals.add_if(spec.checkpoint.load.has_value(), "loads no checkpoint where Primus starts it",
                  "leave --load out, or choose the framework mega");
  add_device_limit(refusals, request);
}

TrainProgram plan_nemo_in_primus(const LaunchRequest& asked) {
  const LaunchRequest request = with_absolute_dataset(asked);
  const std::string experiment = request.paths.folder + "/primus.yaml", script = request.paths.folder + "/primus.sh";
  TrainProgram program = start_primus(request, primus_of(request.checkout));
  program.arguments = {"sh", script};
  program.environment["TPRIMAT_PROGRAM"] = request.own_program;
  program.files = list_adapter_files("tprimat_adapter/primus_recipe.py", request);
  program.files.push_back({experiment, write_primus_file(request, {"megatron_bridge", "pretrain_trainer.yaml",
                                                                   "llama3_8b.yaml", list_overrides(request)})});
  program.files.push_back({script, write_start_script(request, experiment)});
  program.stated = state_bridge_settings(request);
  add_training_only_deviations(program, request.spec);
  return program;
}

}  // namespace tprimat::suite

#include "launch/python_framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "hugging_face/model_config.h"
#include "text/json.h"

namespace tprimat::suite {

namespace embedded {
extern const std::string_view package_init_py, package_config_py, package_steps_py, adapter_init_py,
    adapter_attention_py, adapter_experiment_py, adapter_loop_py, adapter_loss_scale_py, adapter_model_py,
    adapter_profiling_py, adapter_samples_py, adapter_settings_py, train_tran_py, train_fsdp_py, train_deep_py,
    train_nemo_py;
}  // namespace embedded

namespace {

namespace fs = std::filesystem;

struct AdapterFile {
  std::string_view name;
  const std::string_view& content;
};

const AdapterFile k_shared_files[] = {{"tprimat/__init__.py", embedded::package_init_py},
                                      {"tprimat/config.py", embedded::package_config_py},
                                      {"tprimat/steps.py", embedded::package_steps_py},
                                      {"tprimat_adapter/__init__.py", embedded::adapter_init_py},
                                      {"tprimat_adapter/attention.py", embedded::adapter_attention_py},
                                      {"tprimat_adapter/experiment.py", embedded::adapter_experiment_py},
                                      {"tprimat_adapter/loop.py", embedded::adapter_loop_py},
                                      {"tprimat_adapter/loss_scale.py", embedded::adapter_loss_scale_py},
                                      {"tprimat_adapter/model.py", embedded::adapter_model_py},
                                      {"tprimat_adapter/profiling.py", embedded::adapter_profiling_py},
                                      {"tprimat_adapter/samples.py", embedded::adapter_samples_py},
                                      {"tprimat_adapter/settings.py", embedded::adapter_settings_py}};
const AdapterFile k_scripts[] = {{"train_tran.py", embedded::train_tran_py},
                                 {"train_fsdp.py", embedded::train_fsdp_py},
                                 {"train_deep.py", embedded::train_deep_py},
                                 {"train_nemo.py", embedded::train_nemo_py}};

fs::path python_of(const PythonFramework& framework) {
  return python_environments() / enum_name(framework.id) / "bin" / "python";
}

template <class Value>
bool holds(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

void require_possible(const PythonFramework& framework, const TrainSpec& spec, Platform platform) {
  std::vector<Problem> problems;
  const auto refuse = [&](std::string what, std::string hint) {
    problems.push_back({fmt::format("the framework '{}' {}", enum_name(framework.id), what), "", std::move(hint)});
  };
  const ParallelSpec& layout = spec.parallel;
  if (layout.tensor > 1 || layout.pipeline > 1 || layout.context > 1)
    refuse(fmt::format("trains data-parallel only, but the layout is TP {} PP {} CP {}", layout.tensor, layout.pipeline,
                       layout.context),
           "choose a strategy with TP, PP and CP 1");
  if (layout.data > 1 && !holds(framework.zero_stages, layout.zero_stage))
    refuse(fmt::format("does not support ZeRO-{}", layout.zero_stage), "choose another zero_stage");
  if (holds(framework.precisions_of_gpus, spec.precision) && platform == Platform::cpu)
    refuse(fmt::format("trains in {} on GPUs only", enum_name(spec.precision)), "choose bf16 or fp32");
  else if (!holds(framework.precisions, spec.precision) && !holds(framework.precisions_of_gpus, spec.precision))
    refuse(fmt::format("does not train in {}", enum_name(spec.precision)), "choose bf16 or fp32");
  throw_if_any(std::move(problems));
}

}  // namespace

fs::path python_environments() {
  if (const char* folder = std::getenv("TPRIMAT_FRAMEWORKS"); folder != nullptr && *folder != 0) return folder;
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data != 0)
    return fs::path(data) / "tprimat/frameworks";
  const char* home = std::getenv("HOME");
  return fs::path(home != nullptr ? home : "/") / ".local/share/tprimat/frameworks";
}

// "transformers-5.23.0.dist-info" says the version without starting Python.
std::optional<std::string> find_package_version(const fs::path& prefix, std::string_view package) {
  const std::string start = std::string(package) + "-", end = ".dist-info";
  std::error_code failure;
  for (const auto& python : fs::directory_iterator(prefix / "lib", failure))
    for (const char* packages : {"site-packages", "dist-packages"})
      for (const auto& entry : fs::directory_iterator(python.path() / packages, failure)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(start) && name.ends_with(end))
          return name.substr(start.size(), name.size() - start.size() - end.size());
      }
  return std::nullopt;
}

std::vector<GeneratedFile> list_adapter_files(std::string_view script, const LaunchRequest& request) {
  const fs::path folder = request.paths.folder;
  std::vector<GeneratedFile> files = {
      {(folder / "train_spec.json").string(), print_json(train_spec_to_json(request.spec))}};
  for (const AdapterFile& file : k_shared_files)
    files.push_back({(folder / "adapter" / file.name).string(), std::string(file.content)});
  for (const AdapterFile& file : k_scripts)
    if (file.name == script) files.push_back({(folder / "adapter" / file.name).string(), std::string(file.content)});
  return files;
}

std::optional<Installation> find_python_framework(const PythonFramework& framework) {
  const fs::path environment = python_environments() / enum_name(framework.id);
  std::error_code failure;
  if (!fs::exists(python_of(framework), failure)) return std::nullopt;
  const auto version = find_package_version(environment, framework.package);
  if (!version) return std::nullopt;
  return Installation{*version, environment.string()};
}

static std::map<std::string, std::string> environment_of(const LaunchRequest& request, const std::string& steps_path) {
  std::map<std::string, std::string> environment = {{"TPRIMAT_STEPS", steps_path},
                                                    {"TPRIMAT_PROGRAM", request.own_program},
                                                    {"HF_HUB_OFFLINE", "1"},
                                                    {"PYTHONUNBUFFERED", "1"}};
  if (request.platform == Platform::cpu && request.spec.threads > 0)
    environment["OMP_NUM_THREADS"] = std::to_string(request.spec.threads);
  if (const auto& flash = request.settings.flash_attention)
    environment["TPRIMAT_FLASH_ATTENTION"] = *flash ? "on" : "off";
  return environment;
}

TrainProgram plan_python_framework(const PythonFramework& framework, const LaunchRequest& request) {
  require_possible(framework, request.spec, request.platform);
  const fs::path folder = request.paths.folder, spec_path = folder / "train_spec.json";
  TrainProgram program;
  program.arguments = {(folder / "adapter" / framework.script).string(), "--spec", spec_path.string()};
  program.python = python_of(framework).string();
  const bool torchrun = framework.always_torchrun || request.spec.parallel.ranks() > 1;
  program.start = torchrun ? RankStart::torchrun : RankStart::alone;
  if (!torchrun) program.arguments.insert(program.arguments.begin(), program.python);
  program.steps_path = (folder / "steps.jsonl").string();
  program.environment = environment_of(request, program.steps_path);
  program.files = list_adapter_files(framework.script, request);
  program.files.insert(
      program.files.begin() + 1,
      {(folder / "config.json").string(), print_json(make_hugging_face_config(request.spec.model, NumberFormat::f32))});
  add_training_only_deviations(program, request.spec);
  return program;
}

}  // namespace tprimat::suite

#include "launch/python_framework.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "hugging_face/model_config.h"
#include "launch/installed.h"
#include "text/json.h"

namespace tprimat::suite {

namespace embedded {
extern const std::string_view package_init_py, package_config_py, package_steps_py, package_routers_py, adapter_init_py,
    adapter_attention_py, adapter_experiment_py, adapter_experts_py, adapter_loop_py, adapter_loss_scale_py,
    adapter_model_py, adapter_profiling_py, adapter_samples_py, adapter_settings_py, adapter_bridge_py,
    adapter_bridge_experts_py, adapter_primus_recipe_py, train_tran_py, train_fsdp_py, train_deep_py, train_tita_py,
    titan_models_py, titan_experts_py, train_nemo_py;
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

// The main file of an adapter, and what it has beside that.
struct ScriptFile {
  std::string_view script, name;
  const std::string_view& content;
};

constexpr std::string_view k_primus_recipe = "tprimat_adapter/primus_recipe.py", k_bridge = "tprimat_adapter/bridge.py",
                           k_bridge_experts = "tprimat_adapter/bridge_experts.py", k_routers = "tprimat/routers.py",
                           k_experts = "tprimat_adapter/experts.py";

const ScriptFile k_scripts[] = {{"train_tran.py", k_routers, embedded::package_routers_py},
                                {"train_tran.py", k_experts, embedded::adapter_experts_py},
                                {"train_fsdp.py", k_routers, embedded::package_routers_py},
                                {"train_fsdp.py", k_experts, embedded::adapter_experts_py},
                                {"train_deep.py", k_routers, embedded::package_routers_py},
                                {"train_deep.py", k_experts, embedded::adapter_experts_py},
                                {"train_tran.py", "train_tran.py", embedded::train_tran_py},
                                {"train_fsdp.py", "train_fsdp.py", embedded::train_fsdp_py},
                                {"train_deep.py", "train_deep.py", embedded::train_deep_py},
                                {"train_tita.py", "train_tita.py", embedded::train_tita_py},
                                {"train_tita.py", "titan_models.py", embedded::titan_models_py},
                                {"train_tita.py", "titan_experts.py", embedded::titan_experts_py},
                                {"train_nemo.py", k_bridge, embedded::adapter_bridge_py},
                                {"train_nemo.py", k_bridge_experts, embedded::adapter_bridge_experts_py},
                                {"train_nemo.py", "train_nemo.py", embedded::train_nemo_py},
                                {k_primus_recipe, k_bridge, embedded::adapter_bridge_py},
                                {k_primus_recipe, k_bridge_experts, embedded::adapter_bridge_experts_py},
                                {k_primus_recipe, k_primus_recipe, embedded::adapter_primus_recipe_py}};

// A framework that one of our own Python adapters drives (frameworks/train_<id>.py). The adapter's sources are part of
// this program and are written beside each run, so that they can be read and run again.
struct PythonFramework {
  Framework id;
  std::string_view package;                   // its version is the framework's
  std::string_view script;                    // the adapter's main file
  bool always_torchrun;                       // also for one rank
  std::vector<Precision> precisions;          // on every platform
  std::vector<Precision> precisions_of_gpus;  // additional ones on GPUs
  std::vector<int64_t> zero_stages;           // supported stages
};

template <class Value>
bool holds(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// "0, 2 or 3"
std::string list_stages(const PythonFramework& framework) {
  std::string text;
  for (const int64_t& stage : framework.zero_stages)
    text += fmt::format("{}{}",
                        &stage == &framework.zero_stages.front()  ? ""
                        : &stage == &framework.zero_stages.back() ? " or "
                                                                  : ", ",
                        stage);
  return text;
}

std::string list_precisions(const PythonFramework& framework, Platform platform) {
  std::vector<Precision> all = framework.precisions;
  if (platform != Platform::cpu)
    all.insert(all.end(), framework.precisions_of_gpus.begin(), framework.precisions_of_gpus.end());
  std::string text;
  for (const Precision& each : all)
    text += fmt::format("{}{}", &each == &all.front() ? "" : &each == &all.back() ? " or " : ", ", enum_name(each));
  return fmt::format("set its precision to {}, or choose --adapt nearest", text);
}

bool can_train_in(const PythonFramework& framework, Precision precision, Platform platform) {
  return holds(framework.precisions, precision) ||
         (platform != Platform::cpu && holds(framework.precisions_of_gpus, precision));
}

// Each rank computes all experts of its tokens; a family of Transformers drops none of them.
void refuse_expert_settings(Refusals& refusals, const TrainSpec& spec, Framework framework) {
  const ParallelSpec& layout = spec.parallel;
  refusals.add_if(
      layout.expert_ranks() > 1 || layout.expert_tensor_ranks() > 1,
      fmt::format("has every expert on every rank{}, but the layout is EP {} ETP {}",
                  framework == Framework::deep
                      ? " (its expert parallelism covers its own MoE layers only, not those of Transformers)"
                      : "",
                  layout.expert_ranks(), layout.expert_tensor_ranks()),
      "choose a strategy with EP and ETP 1, or --adapt nearest; with ZeRO-3 the ranks of fsdp and deep share the "
      "experts' weights");
  refusals.add_if(spec.model.prediction_layers.value_or(0) > 0,
                  "does not train layers that predict further tokens (MTP): Transformers leaves them out of the loss",
                  "choose a model without prediction_layers");
  refusals.add_if(spec.model.experts && spec.model.experts->capacity_factor,
                  "drops no tokens, but the model has a capacity_factor", "choose a model without capacity_factor");
}

// Throws Error that names the unsupported settings.
void require_possible(const PythonFramework& framework, const TrainSpec& spec, Platform platform) {
  Refusals refusals(framework.id);
  const ParallelSpec& layout = spec.parallel;
  refusals.add_if(layout.tensor > 1 || layout.pipeline > 1 || layout.context > 1,
                  fmt::format("trains data-parallel only, but the layout is TP {} PP {} CP {}", layout.tensor,
                              layout.pipeline, layout.context),
                  "choose a strategy with TP, PP and CP 1, or --adapt nearest");
  refusals.add_if(layout.data > 1 && !holds(framework.zero_stages, layout.zero_stage),
                  fmt::format("does not support ZeRO-{}", layout.zero_stage),
                  fmt::format("set zero_stage to {}, or choose --adapt nearest", list_stages(framework)));
  refuse_megatron_settings(refusals, spec);
  refuse_expert_settings(refusals, spec, framework.id);
  const bool on_gpus = holds(framework.precisions_of_gpus, spec.precision);
  refusals.add_if(on_gpus && platform == Platform::cpu,
                  fmt::format("trains in {} on GPUs only", enum_name(spec.precision)),
                  list_precisions(framework, platform));
  refusals.add_if(!on_gpus && !holds(framework.precisions, spec.precision),
                  fmt::format("does not train in {}", enum_name(spec.precision)), list_precisions(framework, platform));
  refusals.throw_if_any();
}

// Command, environment and files of one training.
TrainProgram plan_python_framework(const PythonFramework& framework, const LaunchRequest& request) {
  require_possible(framework, request.spec, request.platform);
  const fs::path folder = request.paths.folder;
  TrainProgram program = run_adapter(framework.script, request);
  use_adapter_environment(framework.id, request, program);
  if (!framework.always_torchrun && request.spec.parallel.ranks() == 1) {
    program.start = RankStart::alone;
    program.arguments.insert(program.arguments.begin(), program.python);
  }
  if (request.spec.dispatcher)  // tokens stay on their rank
    program.deviations.push_back({"dispatcher", std::string(enum_name(*request.spec.dispatcher)), "none"});
  program.files.insert(
      program.files.begin() + 1,
      {(folder / "config.json").string(), print_json(make_hugging_face_config(request.spec.model, NumberFormat::f32))});
  return program;
}

const PythonFramework k_tran = {.id = Framework::tran,
                                .package = "transformers",
                                .script = "train_tran.py",
                                .always_torchrun = false,
                                .precisions = {Precision::fp32, Precision::bf16},
                                .precisions_of_gpus = {Precision::fp16},
                                .zero_stages = {0}};

const PythonFramework k_fsdp = {.id = Framework::fsdp,
                                .package = "torch",
                                .script = "train_fsdp.py",
                                .always_torchrun = true,
                                .precisions = {Precision::fp32, Precision::bf16, Precision::fp16},
                                .precisions_of_gpus = {},
                                .zero_stages = {0, 2, 3}};

const PythonFramework k_deep = {.id = Framework::deep,
                                .package = "deepspeed",
                                .script = "train_deep.py",
                                .always_torchrun = true,
                                .precisions = {Precision::fp32, Precision::bf16},
                                .precisions_of_gpus = {Precision::fp16},
                                .zero_stages = {0, 1, 2, 3}};

// torch.optim.AdamW keeps its moments in the format of the weights, and rounds to nearest.
TrainProgram plan_tran(const LaunchRequest& request) {
  const OptimizerSpec& optimizer = request.spec.optimizer;
  const bool pure = !optimizer.master_weights;
  Refusals refusals(Framework::tran);
  refusals.add_if(pure != (optimizer.moments == MomentFormat::bf16),
                  "keeps Adam's moments in the format of its weights: bf16 without master weights, else fp32",
                  "set both, moments: bf16 and master_weights: false, or neither");
  refusals.add_if(
      pure && request.spec.precision != Precision::bf16,
      fmt::format("has weights without a master copy in bf16 only, not in {}", enum_name(request.spec.precision)),
      "set the precision to bf16, or master_weights to true");
  refusals.throw_if_any();
  TrainProgram program = plan_python_framework(k_tran, request);
  if (pure) program.deviations.push_back({"weight_rounding", "stochastic", "to nearest"});
  return program;
}

// Its policy for the host moves weights, gradients and optimizer together.
void add_fsdp_offload_deviation(const TrainSpec& spec, std::vector<Deviation>& list) {
  if (spec.offload == Offload::optimizer) list.push_back({"offload", "optimizer", "parameters"});
}

TrainProgram plan_fsdp(const LaunchRequest& request) {
  TrainProgram program = plan_python_framework(k_fsdp, request);
  if (request.spec.parallel.data > 1 && request.spec.parallel.zero_stage == 0)
    program.deviations.push_back({"zero_stage", "0", "3"});  // sharing is what it is for
  add_fsdp_offload_deviation(request.spec, program.deviations);
  return program;
}

// Only with ZeRO does it add up short gradients in fp32.
int64_t zero_stage_of_deep(const TrainSpec& spec) {
  return std::max<int64_t>(spec.parallel.zero_stage, spec.precision == Precision::fp32 ? 0 : 1);
}

TrainProgram plan_deep(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  const LossScaleSpec& scale = spec.loss_scale;
  Refusals refusals(Framework::deep);
  const int64_t stage = zero_stage_of_deep(spec);
  refusals.add_if(spec.offload == Offload::optimizer && stage == 0, "offloads the optimizer with ZeRO only",
                  "set zero_stage to 1, 2 or 3, or leave offload out");
  refusals.add_if(spec.offload == Offload::parameters && stage < 3, "offloads parameters with ZeRO-3 only",
                  "set zero_stage to 3, or offload to optimizer");
  refusals.add_if(
      spec.precision == Precision::fp16 && (std::exp2(std::round(std::log2(scale.initial))) != scale.initial ||
                                            scale.initial < 1.0 || std::round(scale.minimum) != scale.minimum),
      fmt::format("needs an initial loss scale of 2, 4, 8 ... and a whole minimum, but loss_scale has {} "
                  "and {}",
                  scale.initial, scale.minimum),
      fmt::format("set training.precision.loss_scale.initial to {} and its minimum to {}",
                  nearest_power_of_two(scale.initial), std::max(1.0, std::round(scale.minimum))));
  refusals.throw_if_any();
  TrainProgram program = plan_python_framework(k_deep, request);
  if (request.platform == Platform::cpu) program.environment["DS_ACCELERATOR"] = "cpu";  // also where a GPU is
  if (spec.parallel.data > 1 && stage != spec.parallel.zero_stage)
    program.deviations.push_back({"zero_stage", "0", std::to_string(stage)});
  return program;
}

// The virtual environment that is stated, else <python_environments()>/<id>.
fs::path environment_of(Framework id, const Checkout& checkout) {
  return checkout.installation.empty() ? python_environments() / enum_name(id) : fs::path(checkout.installation);
}

FrameworkModule module_of(const PythonFramework& framework, std::string_view long_name,
                          decltype(FrameworkModule::find) find, decltype(FrameworkModule::plan) plan,
                          std::string_view installing) {
  FrameworkModule module = {framework.id, long_name, {Platform::nvd, Platform::amd, Platform::cpu},         find, plan,
                            installing,   "",        {Profiler::nsys, Profiler::rocprofv3, Profiler::torch}};
  module.is_environment = true;
  module.further_steps = Profiler::torch;
  return module;
}

}  // namespace

std::vector<GeneratedFile> list_adapter_files(std::string_view script, const LaunchRequest& request) {
  const fs::path folder = request.paths.folder;
  std::vector<GeneratedFile> files = {
      {(folder / "train_spec.json").string(), print_json(train_spec_to_json(request.spec))}};
  for (const AdapterFile& file : k_shared_files)
    files.push_back({(folder / "adapter" / file.name).string(), std::string(file.content)});
  for (const ScriptFile& file : k_scripts)
    if (file.script == script) files.push_back({(folder / "adapter" / file.name).string(), std::string(file.content)});
  return files;
}

TrainProgram run_adapter(std::string_view script, const LaunchRequest& request) {
  const std::string& folder = request.paths.folder;
  TrainProgram program;
  program.arguments = {fmt::format("{}/adapter/{}", folder, script), "--spec", folder + "/train_spec.json"};
  program.start = RankStart::torchrun;
  program.steps_path = folder + "/steps.jsonl";
  program.environment = {{"TPRIMAT_STEPS", program.steps_path},
                         {"TPRIMAT_PROGRAM", request.own_program},
                         {"HF_HUB_OFFLINE", "1"},
                         {"PYTHONUNBUFFERED", "1"}};
  program.files = list_adapter_files(script, request);
  add_training_only_deviations(program, request.spec);
  return program;
}

std::optional<Installation> find_adapter_environment(Framework id, std::string_view package, const Checkout& checkout) {
  const fs::path environment = environment_of(id, checkout);
  std::error_code failure;
  if (!fs::exists(environment / "bin" / "python", failure)) return std::nullopt;
  const auto version = find_package_version(environment, package);
  if (!version) return std::nullopt;
  return Installation{*version, environment.string()};
}

void use_adapter_environment(Framework id, const LaunchRequest& request, TrainProgram& program) {
  program.python = (environment_of(id, request.checkout) / "bin" / "python").string();
  if (request.platform == Platform::cpu && request.spec.threads > 0)
    program.environment["OMP_NUM_THREADS"] = std::to_string(request.spec.threads);
  if (const auto& flash = request.settings.flash_attention)
    program.environment["TPRIMAT_FLASH_ATTENTION"] = *flash ? "on" : "off";
}

// Hugging Face Transformers: its Trainer; several ranks under torchrun.
FrameworkModule tran_module() {
  FrameworkModule module = module_of(
      k_tran, "HF Transformers",
      [](const Checkout& checkout) { return find_adapter_environment(k_tran.id, k_tran.package, checkout); }, plan_tran,
      "run tprimat doctor --install tran");
  module.sets_formats = true;
  module.checked = {"Transformers", {"5.23.0"}, "PyTorch 2.13.0, Accelerate 1.15.0"};
  module.trains_in = [](Precision precision, Platform platform) { return can_train_in(k_tran, precision, platform); };
  return module;
}

// PyTorch FSDP2 (fully_shard). Without a zero_stage it shards everything, as ZeRO-3.
FrameworkModule fsdp_module() {
  FrameworkModule module = module_of(
      k_fsdp, "PyTorch FSDP2",
      [](const Checkout& checkout) { return find_adapter_environment(k_fsdp.id, k_fsdp.package, checkout); }, plan_fsdp,
      "run tprimat doctor --install fsdp");
  module.offloads = true;
  module.checked = {"PyTorch", {"2.13.0"}, "Transformers 5.23.0"};
  module.trains_in = [](Precision precision, Platform platform) { return can_train_in(k_fsdp, precision, platform); };
  return module;
}

// DeepSpeed's engine with ZeRO-0 to 3.
FrameworkModule deep_module() {
  FrameworkModule module = module_of(
      k_deep, "DeepSpeed",
      [](const Checkout& checkout) { return find_adapter_environment(k_deep.id, k_deep.package, checkout); }, plan_deep,
      "run tprimat doctor --install deep");
  module.offloads = true;
  module.checked = {"DeepSpeed", {"0.19.8"}, "PyTorch 2.13.0, Transformers 5.23.0"};
  module.trains_in = [](Precision precision, Platform platform) { return can_train_in(k_deep, precision, platform); };
  return module;
}

}  // namespace tprimat::suite

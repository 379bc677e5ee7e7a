#include "launch/frameworks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "launch/argument_list.h"
#include "launch/launch_plan.h"
#include "launch/launchers.h"
#include "launch/loaded_checkpoint.h"
#include "launch/profilers.h"
#include "launch/replaced_arguments.h"

namespace tprimat::suite {
namespace {

std::string describe_available() {
  std::string text;
  for (const FrameworkModule& module : framework_modules()) {
    std::string platforms;
    for (const Platform platform : module.platforms)
      platforms += (platforms.empty() ? "" : ", ") + std::string(enum_name(platform));
    text += fmt::format("{}{} (on {})", text.empty() ? "" : "; ", enum_name(module.id), platforms);
  }
  return text;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Problem{what, "--framework", "available: " + describe_available()}, ExitStatus::missing_component);
}

void refuse_compact_optimizer(const FrameworkModule& module, const OptimizerSpec& optimizer) {
  if (module.sets_formats || !optimizer.is_compact()) return;
  throw Error(
      Problem{fmt::format("{} uses its own formats for weights and moments; tprimat cannot set them", module.long_name),
              optimizer.master_weights ? "training.optimizer.moments" : "training.optimizer.master_weights",
              "leave out moments and master_weights, or choose the framework native, tran or tita"});
}

void refuse_offload(const FrameworkModule& module, const LaunchRequest& request) {
  if (!request.spec.offload || module.offloads) return;
  throw Error(Problem{fmt::format("{} keeps its whole state in the devices' memory", module.long_name),
                      fmt::format("frameworks.{}.offload", enum_name(module.id)),
                      "leave offload out, or choose the framework deep, fsdp or tita"});
}

void refuse_arguments(const FrameworkModule& module, const LaunchRequest& request) {
  if (request.arguments.empty() || module.takes_arguments) return;
  throw Error(Problem{fmt::format("the adapter of {} takes no additional arguments", module.long_name),
                      fmt::format("frameworks.{}.arguments", enum_name(module.id)),
                      fmt::format("leave arguments out: its layout, formats and recomputation have keys under "
                                  "frameworks.{}, environment variables under platform_optimizations.<platform>",
                                  enum_name(module.id))});
}

// They follow the program's own, so that they hold.
void add_arguments(TrainProgram& program, const FrameworkModule& module, const LaunchRequest& request) {
  if (program.has_further_arguments) return;
  std::vector<std::string> planned = program.arguments;
  if (module.stated_in_files != nullptr) append(planned, module.stated_in_files(request));
  for (Deviation& each : list_replaced_arguments(planned, request.arguments,
                                                 fmt::format("frameworks.{}.arguments", enum_name(module.id))))
    program.deviations.push_back(std::move(each));
  append(program.arguments, request.arguments);
}

}  // namespace

// Each is defined in the file of its name; tran, fsdp and deep in python_framework.cpp.
FrameworkModule native_module(), tran_module(), fsdp_module(), deep_module(), tita_module(), mega_module(),
    mgds_module(), nemo_module(), prim_module();

const std::vector<FrameworkModule>& framework_modules() {
  static const std::vector<FrameworkModule> modules = {native_module(), tran_module(), fsdp_module(),
                                                       deep_module(),   tita_module(), mega_module(),
                                                       mgds_module(),   nemo_module(), prim_module()};
  return modules;
}

void Refusals::add_if(bool refused, const std::string& what, const std::string& hint, const std::string& where) {
  if (refused) problems_.push_back({fmt::format("the framework '{}' {}", enum_name(framework_), what), where, hint});
}

void refuse_megatron_settings(Refusals& refusals, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  refusals.add_if(layout.pipeline_layout.has_value(),
                  fmt::format("cannot cut a pipeline as pipeline_layout \"{}\" says",
                              printable(layout.pipeline_layout.value_or("").substr(0, 64))),
                  "leave pipeline_layout out of the layout, or choose the framework mega, nemo or prim");
  refusals.add_if(spec.recompute_modules.has_value(), "does not choose what selective recomputation repeats",
                  "leave recompute_modules out, or choose the framework mega, nemo or prim");
}

double nearest_power_of_two(double scale) { return std::max(2.0, std::exp2(std::round(std::log2(scale)))); }

bool runs_on(const FrameworkModule& module, Platform platform) {
  return std::find(module.platforms.begin(), module.platforms.end(), platform) != module.platforms.end();
}

Checkout checkout_of(const FrameworkModule& module, const std::map<std::string, std::string>& paths,
                     Platform platform) {
  const auto stated = [&](std::string_view name, const char* key) {
    const auto found = paths.find(fmt::format("{}.{}", name, key));
    return found == paths.end() ? std::string() : found->second;
  };
  const auto folder = [&](std::string_view name) {  // from the root: a container and another folder know no other
    const std::string text = stated(name, "installation");
    return text.empty() ? text : std::filesystem::absolute(text).lexically_normal().string();
  };
  const std::string_view name = module.checkout;
  Checkout checkout{folder(name), stated(name, "config_dir"), stated(name, "run_script")};
  const bool by_primus = module.id == Framework::nemo && platform == Platform::amd;
  if (by_primus) checkout.primus = folder("primus");
  return checkout;
}

const FrameworkModule* find_framework(Framework id) {
  const auto found = std::ranges::find(framework_modules(), id, &FrameworkModule::id);
  return found == framework_modules().end() ? nullptr : &*found;
}

const FrameworkModule& require_framework(Framework id, Platform platform) {
  const FrameworkModule* found = find_framework(id);
  if (found == nullptr) refuse(fmt::format("this version cannot launch the framework '{}'", enum_name(id)));
  if (!runs_on(*found, platform))
    refuse(fmt::format("the framework '{}' does not run on the platform {}", enum_name(id), enum_name(platform)));
  return *found;
}

std::optional<Problem> find_lacking(const FrameworkModule& module, Platform platform) {
  return module.lacking_on == nullptr ? std::nullopt : module.lacking_on(platform);
}

void require_installed(const FrameworkModule& module, const Checkout& checkout, Platform platform) {
  if (!module.find(checkout))
    throw Error(Problem{fmt::format("the framework '{}' is not installed", enum_name(module.id)), "--framework",
                        std::string(module.installing)},
                ExitStatus::missing_component);
  if (const auto problem = find_lacking(module, platform)) throw Error(*problem, ExitStatus::missing_component);
}

void add_training_only_deviations(TrainProgram& program, const TrainSpec& spec) {
  if (spec.evaluation.interval > 0)
    program.deviations.push_back({"evaluation", fmt::format("after every {} steps", spec.evaluation.interval), "none"});
  if (!spec.checkpoint.directory.empty()) program.deviations.push_back({"checkpoints", "saved", "not saved"});
}

LaunchPlan plan_launch(const FrameworkModule& module, const LaunchRequest& request) {
  refuse_compact_optimizer(module, request.spec.optimizer);
  refuse_offload(module, request);
  refuse_arguments(module, request);
  if (request.spec.checkpoint.load) require_loading(module);
  TrainProgram program = module.plan(request);
  require_kept_checkpoint(request.spec, program.checkpoints_path);
  add_arguments(program, module, request);
  LaunchPlan plan;
  plan.environment = platform_environment(request);
  plan.environment.merge(program.environment);  // the configuration wins
  const std::string& own = program.working_directory;
  plan.working_directory = own.empty() ? request.paths.working_directory : own;
  plan.files = std::move(program.files);
  plan.log_path = request.paths.log;
  plan.steps_path = std::move(program.steps_path);
  plan.checkpoints_path = std::move(program.checkpoints_path);
  plan.result_path = request.paths.result;
  if (request.profiled_steps) plan.environment["TPRIMAT_PROFILE"] = print_window(*request.profiled_steps);
  place_ranks(program, request, plan);
  if (request.profile) add_profiler(plan, request);
  plan.deviations = std::move(program.deviations);
  plan.stated = std::move(program.stated);
  plan.remarks.insert(plan.remarks.begin(), program.remarks.begin(), program.remarks.end());
  return plan;
}

}  // namespace tprimat::suite

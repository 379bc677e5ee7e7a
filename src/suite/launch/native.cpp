#include <fmt/format.h>

#include <filesystem>

#include "base/build_info.h"
#include "base/program_module.h"
#include "launch/argument_list.h"
#include "launch/frameworks.h"
#include "launch/loaded_checkpoint.h"
#include "text/json.h"

namespace tprimat::suite {
namespace {

// A relative checkpoint directory lies in the run's own folder.
TrainSpec place_checkpoints(TrainSpec spec, const std::filesystem::path& folder) {
  std::string& directory = spec.checkpoint.directory;
  if (!directory.empty()) directory = (folder / directory).string();
  return spec;
}

// Its fp8 is always the hybrid of formats, of copies of weights that are kept in bf16.
std::vector<Deviation> fp8_deviations(const LaunchRequest& request) {
  std::vector<Deviation> deviations;
  if (request.spec.precision != Precision::fp8) return deviations;
  if (!request.settings.fp8_hybrid.value_or(true)) deviations.push_back({"fp8_hybrid", "false", "true"});
  if (request.settings.fp8_param.value_or(false)) deviations.push_back({"fp8_param", "true", "false"});
  return deviations;
}

// Options of `tprimat train` that say otherwise than its specification hold.
std::vector<std::string> stated_in_specification(const LaunchRequest& request) {
  const TrainSpec spec = place_checkpoints(request.spec, request.paths.folder);
  const CheckpointSpec& checkpoint = spec.checkpoint;
  ArgumentList list;
  list.add("--steps", spec.steps);
  list.add("--device", enum_name(request.platform));
  if (!checkpoint.directory.empty()) {
    list.add("--save", checkpoint.directory);
    list.add("--save-interval", checkpoint.save_interval);
    list.add("--keep", checkpoint.keep_last_n);
  }
  if (checkpoint.load) list.add("--load", *checkpoint.load);
  if (!checkpoint.initial_weights.empty()) list.add("--initial-weights", checkpoint.initial_weights);
  return std::move(list).take();
}

std::optional<Installation> find_native(const Checkout&) {
  return Installation{std::string(build_info().version), "built in"};
}

// scripts/build_gpu.sh puts the module into a build of its own, beside this one.
std::string find_build_with(const std::string& module, Platform platform) {
  std::error_code unreadable;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  const std::filesystem::path folder = program.parent_path().parent_path() / enum_name(platform);
  const bool is_there = std::filesystem::is_regular_file(folder / module, unreadable) &&
                        std::filesystem::is_regular_file(folder / program.filename(), unreadable);
  return is_there ? (folder / program.filename()).string() : "";
}

// The platform's GPU module, which a CPU build lacks.
std::optional<Problem> lacking_of_native(Platform platform) {
  if (platform == Platform::cpu) return std::nullopt;
  const std::string name = fmt::format("libtprimat_{}.so", enum_name(platform));
  if (find_program_module(name)) return std::nullopt;
  const std::string other = find_build_with(name, platform);
  return Problem{fmt::format("the framework 'native' on {} GPUs needs {}, which is missing beside this program",
                             display_name(platform), name),
                 "--framework",
                 other.empty()
                     ? fmt::format("build both with scripts/build_gpu.sh {} (docs/gpu.md)", enum_name(platform))
                     : fmt::format("run {}, which has it", other)};
}

void require_native_can(const TrainSpec& spec) {
  Refusals refusals(Framework::native);
  for (const std::string& part : list_special_parts(spec.model))
    refusals.add_if(true, "does not support " + part,
                    "add --framework mega, nemo, tita or fsdp, or choose a dense model");
  refuse_megatron_settings(refusals, spec);
  refusals.throw_if_any();
}

// The trainer beside this program: `tprimat train --spec FILE`, with the step records in $TPRIMAT_STEPS.
// A layout of several ranks is started by MPI, with `threads` threads in each.
TrainProgram plan_native(const LaunchRequest& request) {
  require_native_can(request.spec);
  const std::string spec_path = request.paths.folder + "/train_spec.json";
  const TrainSpec spec = place_checkpoints(request.spec, request.paths.folder);
  TrainProgram program;
  program.arguments = {request.own_program, "train", "--spec", spec_path};
  if (request.platform != Platform::cpu)
    program.arguments.insert(program.arguments.end(), {"--device", std::string(enum_name(request.platform))});
  program.start = spec.parallel.ranks() > 1 ? RankStart::mpi : RankStart::alone;
  program.steps_path = request.paths.folder + "/steps.jsonl";
  program.environment = {{"TPRIMAT_STEPS", program.steps_path}};
  program.checkpoints_path = spec.checkpoint.directory;
  program.deviations = fp8_deviations(request);
  program.files = {{spec_path, print_json(train_spec_to_json(spec))}};
  return program;
}

}  // namespace

FrameworkModule native_module() {
  FrameworkModule module = {Framework::native,
                            "native C++ trainer",
                            {Platform::nvd, Platform::amd, Platform::cpu},
                            find_native,
                            plan_native,
                            "it is part of this program",
                            "",
                            {Profiler::own, Profiler::nsys, Profiler::rocprofv3},
                            lacking_of_native};
  module.sets_formats = module.takes_arguments = true;
  module.further_steps = Profiler::own;
  module.stated_in_files = stated_in_specification;
  module.find_checkpoint = find_native_checkpoint;
  return module;
}

}  // namespace tprimat::suite

#include "run/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "config/layout_rules.h"
#include "planner/calibrate.h"
#include "planner/memory.h"
#include "planner/own_results.h"
#include "run/nearest_layout.h"
#include "spec/hardware_catalogue.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

const GpuFacts* find_gpu(const PlannedRun& run, const MachineFacts& machine) {
  if (run.plan.place == Whereabouts::elsewhere) return nullptr;
  for (const GpuFacts& gpu : machine.gpus)
    if (gpu.platform == run.platform) return &gpu;
  return nullptr;
}

std::optional<planner::Machine> machine_of(const PlannedRun& run, const MachineFacts& machine) {
  const GpuFacts* const gpu = find_gpu(run, machine);
  if (gpu == nullptr) return planner::machine_of_device(run.setup.device_model, run.setup.memory_per_device_gb);
  const auto gb = gpu->memory_bytes ? std::optional(*gpu->memory_bytes * 1e-9) : std::nullopt;
  return planner::machine_of_device(gpu->name, gb);
}

// The form in which results are read back (planner/own_results.h).
std::optional<planner::Machine> processor_of(const PlannedRun& run, const MachineFacts& machine,
                                             const std::optional<PeakInfo>& peak) {
  if (!peak || run.plan.place == Whereabouts::elsewhere) return std::nullopt;
  const int64_t ranks = run.spec.parallel.ranks();
  auto facts = planner::facts_of_peak(*peak, run.spec.precision, used_threads(run, machine.cpu), ranks);
  if (!facts) return std::nullopt;
  facts->name = machine.cpu.model_name;
  facts->memory_bytes = machine.memory_bytes.value_or(0);
  return planner::processor_machine(*facts);
}

std::optional<DeviceMemory> memory_of_host(const PlannedRun& run, const MachineFacts& machine) {
  if (!machine.memory_bytes || run.plan.place == Whereabouts::elsewhere) return std::nullopt;
  const double all = std::min(*machine.memory_bytes, machine.memory_limit_bytes.value_or(*machine.memory_bytes));
  return DeviceMemory{all, "this machine's memory", run.spec.parallel.ranks()};
}

// If not stated, the configuration takes a known part's memory from the catalogue.
std::optional<DeviceMemory> memory_of_catalogue(const PlannedRun& run) {
  const auto part = find_hardware(run.setup.device_model);
  if (!part || !part->memory_bytes || !run.setup.memory_per_device_gb) return std::nullopt;
  const double stated = *run.setup.memory_per_device_gb * 1e9;
  if (std::fabs(*part->memory_bytes / stated - 1) >= 1e-9) return std::nullopt;
  return DeviceMemory{stated, part->display_name + " in the hardware catalogue"};
}

// For other programs the planner has measurements on GPUs only.
std::string missing_on(Platform platform, const planner::Workload& workload) {
  if (platform != Platform::cpu || workload.family->own_trainer) return "";
  return workload.family->full_name + " on a CPU";
}

LayoutTask task_of(const PlannedRun& run, const planner::Layout& layout) {
  return {run.spec.model, layout.num_gpus(), layout.micro_batch, run.spec.global_batch_size, run.spec.sequence_length};
}

// "{TP: 1, PP: 2, DP: 1, GA: 8}, MBS 1, recompute full"
std::string print_fitting(const PlannedRun& run, const planner::Layout& layout) {
  const TrainSpec spec = planner::with_layout(run.spec, layout);
  std::string text = print_layout(task_of(run, layout), spec.parallel) + fmt::format(", MBS {}", layout.micro_batch);
  if (layout.recompute != Recompute::none) text += fmt::format(", recompute {}", enum_name(layout.recompute));
  return text;
}

// Whether the program accepts it and the planner can compute its memory.
bool is_accepted(const PlannedRun& run, const planner::Layout& layout) {
  LaunchRequest request = run.request;
  request.spec = planner::with_layout(run.spec, layout);
  if (!planner::workload_of(request.spec, run.framework, run.platform).missing.empty()) return false;
  try {
    plan_launch(require_framework(run.framework, run.platform), request);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string describe_no_fit(const planner::Workload& workload) {
  const planner::Family& family = *workload.family;
  const bool splits = family.own_trainer || family.fully_sharded || family.sharded_optimizer || family.tensor_parallel;
  if (splits)
    return fmt::format("{}no layout on this many devices fits; use more devices, or a smaller model or sequence",
                       workload.shape.experts ? "by this estimate " : "");
  return fmt::format(
      "neither a smaller micro-batch nor recomputation makes it fit, and {} replicates the model, so more devices do "
      "not help; use a framework that shards (fsdp, mega), or a smaller model or sequence",
      family.full_name);
}

// For our own trainer: formats of the optimizer's states with which the layout fits; empty if none do.
std::string suggest_formats(const FitTask& task, planner::Workload workload) {
  std::string keys;
  const auto fits_with = [&](const std::string& key) {
    keys += (keys.empty() ? "" : " and ") + key;
    return task.needs(workload) <= task.bytes;
  };
  const auto advice = [&] {
    return fmt::format("; training.optimizer with {} lowers it to {}", keys, format_memory(task.needs(workload)));
  };
  if (!workload.family->own_trainer) return "";
  if (workload.moment_bytes > 2) {
    workload.moment_bytes = 2;
    if (fits_with("moments: bf16")) return advice();
  }
  if (!workload.keeps_masters || workload.precision == planner::PlanPrecision::fp32) return "";
  workload.keeps_masters = false;
  return fits_with("master_weights: false") ? advice() : "";
}

Problem describe_misfit(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner) {
  return {fmt::format("{} does not fit: {}", name_training(run), describe_memory(known)),
          fmt::format("models.{}", run.spec.model.name),
          suggest_fitting(run, known, planner) + "; or continue with --force"};
}

// Of a mixture of experts whose states alone fit.
Problem describe_doubt(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner) {
  return {fmt::format("{} may not fit: {}; the states alone ({}) fit, and the rest is a rough estimate",
                      name_training(run), describe_memory(known), format_memory(known.memory->states())),
          fmt::format("models.{}", run.spec.model.name), suggest_fitting(run, known, planner)};
}

// Of each training once, in the order of the suite.
template <class Describe>
std::vector<Problem> list_problems(const SuitePlan& suite, const MachineFacts& machine,
                                   const planner::PlannerSettings& planner, const Describe& describe) {
  std::vector<Problem> problems;
  std::set<std::string> seen;
  for (const PlannedRun& run : suite.runs) {
    if (!seen.insert(name_training(run)).second) continue;  // a repeated run
    if (const std::optional<Problem> problem = describe(run, forecast(run, machine, planner)))
      problems.push_back(*problem);
  }
  return problems;
}

// Largest first, without negligible parts.
std::string list_parts(const planner::MemoryEstimate& memory) {
  constexpr double k_smallest_share = 0.02;
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > k_smallest_share * memory.total()) sorted.emplace_back(bytes, name);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (const auto& [bytes, name] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_memory(bytes));
  return text;
}

bool is_own_on_gpu(const PlannedRun& run) {
  return run.framework == Framework::native && run.platform != Platform::cpu;
}

// Why a run's memory is predicted but not its time.
std::string no_time(const PlannedRun& run, const std::optional<planner::Machine>& part,
                    planner::PlanPrecision precision) {
  if (is_own_on_gpu(run)) return "the step time: the native trainer was not measured on GPUs";
  if (part) return fmt::format("the step time: no {} peak is known for {}", enum_name(precision), part->id);
  return run.platform == Platform::cpu
             ? fmt::format("the step time: the processor's {} peak and bandwidth were not measured",
                           enum_name(run.spec.precision))
             : "the step time: the GPU is not in its list";
}

std::string render_memory_parts(const planner::MemoryEstimate& memory) {
  TextTable table{{"part", "memory", "share"}, {}, {1, 2}};
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > 0) table.rows.push_back({name, format_memory(bytes), format_percent(bytes / memory.total())});
  table.rows.push_back({"all", format_memory(memory.total()), format_percent(1)});
  return render_text(table);
}

// Of a sparse model: the assumption behind the activations.
std::string describe_expert_load(const planner::Workload& workload) {
  if (!workload.shape.experts) return "";
  const double load = planner::load_of_fullest_rank(workload);
  if (load == 1) return "routed tokens: the same number on each rank\n";
  return fmt::format("routed tokens: {:.4g} times the mean on the fullest rank\n", load);
}

std::string render_device_memory(const Forecast& known, const PlannedRun& run,
                                 const planner::PlannerSettings& planner) {
  if (!known.device) return "device memory: unknown\n";
  const std::string capacity = fmt::format("{} ({})", format_memory(known.device->bytes), known.device->source);
  const std::string who = known.device->ranks > 1
                              ? fmt::format("all {} ranks, {}: ", known.device->ranks, format_memory(known.needed))
                              : "";
  if (known.fits()) return fmt::format("{}fits into {}\n", who, capacity);
  const std::string found =
      known.may_fit() ? fmt::format("may not fit into {}: the states alone ({}) fit, and the rest is a rough estimate",
                                    capacity, format_memory(known.memory->states()))
                      : fmt::format("does not fit into {}", capacity);
  return fmt::format("{}{}\n{}\n", who, found, suggest_fitting(run, known, planner));
}

}  // namespace

// A stated figure counts first, then the GPU's own: parts have more memory than advertised.
std::optional<DeviceMemory> device_memory_of(const PlannedRun& run, const MachineFacts& machine) {
  const auto catalogued = memory_of_catalogue(run);
  if (run.setup.memory_per_device_gb && !catalogued)
    return DeviceMemory{*run.setup.memory_per_device_gb * 1e9,
                        fmt::format("hardware.platforms.{}.memory_per_gpu_gb", enum_name(run.platform))};
  if (run.platform == Platform::cpu) return memory_of_host(run, machine);
  if (const GpuFacts* const gpu = find_gpu(run, machine); gpu != nullptr && gpu->memory_bytes)
    return DeviceMemory{*gpu->memory_bytes, gpu->name};
  if (catalogued) return catalogued;
  const auto known = machine_of(run, machine);
  return known ? std::optional(DeviceMemory{known->memory_bytes, known->id}) : std::nullopt;
}

double bytes_needed(const DeviceMemory& device, const planner::Workload& workload,
                    const planner::ParameterSet& parameters) {
  return device.ranks > 1 && workload.family->own_trainer ? planner::plan_native_ranks(workload)
                                                          : planner::estimate_memory(workload, parameters).total();
}

// For other trainers the count is an estimate, and their allocators need spare memory; on a GPU so do driver and
// libraries.
double usable_bytes(const Forecast& forecast) {
  constexpr double k_usable = 0.94;
  const planner::Workload& workload = forecast.workload;
  return (workload.family->own_trainer && !workload.on_gpu ? 1 : k_usable) * forecast.device->bytes;
}

int64_t used_threads(const PlannedRun& run, const CpuFacts& cpu) {
  return std::min(cpu.usable_threads, std::max<int64_t>(1, run.spec.threads) * run.spec.parallel.ranks());
}

int64_t threads_of_rank(const LauncherSettings& launch, int64_t ranks, const CpuFacts& cpu) {
  const bool is_pod = launch.launcher == Launcher::kubernetes && launch.kubernetes.cpus;
  const int64_t threads = is_pod ? *launch.kubernetes.cpus : cpu.usable_threads;
  return std::max<int64_t>(1, threads / std::max<int64_t>(1, ranks / launch.nodes));
}

std::string suggest_fitting(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner) {
  const FitTask task{
      usable_bytes(known),
      [&](const planner::Workload& each) { return bytes_needed(*known.device, each, planner.parameters); },
      [&](const planner::Layout& layout) { return is_accepted(run, layout); }};
  const auto fitting = find_fitting_layout(known.workload, task);
  if (!fitting) return describe_no_fit(known.workload) + suggest_formats(task, known.workload);
  return fmt::format("the nearest layout that fits: {}, which needs {}", print_fitting(run, fitting->layout),
                     format_memory(fitting->bytes));
}

std::string print_planned_layout(const PlannedRun& run) {
  return print_fitting(run, planner::workload_of(run.spec, run.framework, run.platform).workload.layout);
}

Forecast forecast(const PlannedRun& run, const MachineFacts& machine, const planner::PlannerSettings& planner,
                  double expert_load) {
  planner::SpecWorkload read = planner::workload_of(run.spec, run.framework, run.platform);
  Forecast known{std::move(read.workload), std::move(read.missing), {}, device_memory_of(run, machine), 0};
  if (known.missing.empty()) known.missing = missing_on(run.platform, known.workload);
  if (!known.missing.empty()) return known;
  known.workload.expert_load = expert_load;
  known.memory = planner::estimate_memory(known.workload, planner.parameters);
  known.needed = known.device ? bytes_needed(*known.device, known.workload, planner.parameters) : known.memory->total();
  return known;
}

std::vector<Problem> find_misfits(const SuitePlan& suite, const MachineFacts& machine,
                                  const planner::PlannerSettings& planner) {
  return list_problems(suite, machine, planner, [&](const PlannedRun& run, const Forecast& known) {
    return known.may_fit() ? std::nullopt : std::optional(describe_misfit(run, known, planner));
  });
}

std::vector<Problem> find_doubtful_fits(const SuitePlan& suite, const MachineFacts& machine,
                                        const planner::PlannerSettings& planner) {
  return list_problems(suite, machine, planner, [&](const PlannedRun& run, const Forecast& known) {
    return known.fits() || !known.may_fit() ? std::nullopt : std::optional(describe_doubt(run, known, planner));
  });
}

std::string describe_memory(const Forecast& forecast) {
  if (!forecast.memory) return fmt::format("the planner has no model of {}", forecast.missing);
  const bool shared = forecast.device && forecast.device->ranks > 1;
  std::string text = shared
                         ? fmt::format("all {} ranks need {}", forecast.device->ranks, format_memory(forecast.needed))
                         : fmt::format("the heaviest rank needs {}", format_memory(forecast.needed));
  if (forecast.device)
    text += fmt::format(" of {} ({})", format_memory(forecast.device->bytes), forecast.device->source);
  if (shared) text += fmt::format("; the heaviest rank {}", format_memory(forecast.memory->total()));
  return text + ": " + list_parts(*forecast.memory);
}

TimedMachine find_timed_machine(const PlannedRun& run, const MachineFacts& machine,
                                const std::optional<PeakInfo>& peak) {
  const planner::SpecWorkload read = planner::workload_of(run.spec, run.framework, run.platform);
  if (!read.missing.empty()) return {{}, read.missing};
  if (!read.untimed.empty()) return {{}, "the step time: " + read.untimed};
  if (std::string missing = missing_on(run.platform, read.workload); !missing.empty()) return {{}, std::move(missing)};
  auto part = run.platform == Platform::cpu ? processor_of(run, machine, peak) : machine_of(run, machine);
  const planner::PlanPrecision precision = read.workload.precision;
  if (is_own_on_gpu(run) || !part || part->peak(precision) <= 0) return {{}, no_time(run, part, precision)};
  return {std::move(part), ""};
}

std::optional<Prediction> predict(const PlannedRun& run, const MachineFacts& machine,
                                  const planner::PlannerSettings& planner, const std::optional<PeakInfo>& peak) {
  const Forecast known = forecast(run, machine, planner);
  Prediction prediction;
  prediction.family = known.workload.family->id;
  prediction.parameters = planner.source();
  if (known.memory) prediction.memory_gb = known.memory->total() * 1e-9;
  const auto [part, missing] = find_timed_machine(run, machine, peak);
  if (!missing.empty()) prediction.not_predicted = missing;
  if (!missing.empty()) return prediction;
  prediction.machine = part->id;
  prediction.calibrated = planner::rests_on_measurements(planner.parameters, *part, *known.workload.family);
  prediction.step_time_seconds = planner::predict_seconds(planner.parameters, *part, known.workload);
  return prediction;
}

std::string render_memory(const PlannedRun& run, const Forecast& known, const planner::PlannerSettings& planner) {
  const std::string title = fmt::format("{}, {}\n\n", name_training(run), print_planned_layout(run));
  if (!known.memory) return title + fmt::format("the planner has no model of {}\n", known.missing);
  return title + render_memory_parts(*known.memory) + "\n" + describe_expert_load(known.workload) +
         render_device_memory(known, run, planner);
}

}  // namespace tprimat::suite

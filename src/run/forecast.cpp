#include "run/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/layout_rules.h"
#include "planner/calibrate.h"
#include "planner/native_time.h"
#include "run/nearest_layout.h"
#include "text/format.h"

namespace tprimat {
namespace {

const GpuFacts* find_gpu(const PlannedRun& run, const MachineFacts& machine) {
  if (run.plan.place == Whereabouts::elsewhere) return nullptr;
  for (const GpuFacts& gpu : machine.gpus)
    if (gpu.platform == run.platform) return &gpu;
  return nullptr;
}

std::optional<Machine> machine_of(const PlannedRun& run, const MachineFacts& machine) {
  const GpuFacts* const gpu = find_gpu(run, machine);
  if (gpu == nullptr) return machine_of_device(run.setup.device_model, run.setup.memory_per_device_gb);
  const auto gb = gpu->memory_bytes ? std::optional(*gpu->memory_bytes * 1e-9) : std::nullopt;
  return machine_of_device(gpu->name, gb);
}

// The processor by the peak that was measured before the run: each rank's share of it.
std::optional<Machine> processor_of(const PlannedRun& run, const MachineFacts& machine,
                                    const std::optional<PeakInfo>& peak) {
  if (!peak || !peak->memory_bytes_per_second || run.plan.place == Whereabouts::elsewhere) return std::nullopt;
  const auto ranks = static_cast<double>(run.spec.parallel.ranks());
  ProcessorFacts facts;
  facts.name = machine.cpu.model_name;
  facts.threads =
      std::min(machine.cpu.usable_threads, std::max<int64_t>(1, run.spec.threads) * run.spec.parallel.ranks());
  double& measured = run.spec.precision == Precision::fp32 ? facts.peak_32 : facts.peak_16;
  measured = peak->flops_per_second * ranks;
  facts.memory_bandwidth = *peak->memory_bytes_per_second * ranks;
  facts.memory_bytes = machine.memory_bytes.value_or(0);
  return processor_machine(facts);
}

// The ranks on a processor share its memory.
std::optional<DeviceMemory> share_of_host(const PlannedRun& run, const MachineFacts& machine) {
  if (!machine.memory_bytes || run.plan.place == Whereabouts::elsewhere) return std::nullopt;
  const double all = std::min(*machine.memory_bytes, machine.memory_limit_bytes.value_or(*machine.memory_bytes));
  const int64_t ranks = run.spec.parallel.ranks();
  const std::string whose = ranks == 1 ? "this machine's memory" : fmt::format("1/{} of this machine's memory", ranks);
  return DeviceMemory{all / static_cast<double>(ranks), whose};
}

std::optional<DeviceMemory> room_of(const PlannedRun& run, const MachineFacts& machine) {
  if (run.setup.memory_per_device_gb)
    return DeviceMemory{*run.setup.memory_per_device_gb * 1e9,
                        fmt::format("hardware.platforms.{}.memory_per_gpu_gb", enum_name(run.platform))};
  if (run.platform == Platform::cpu) return share_of_host(run, machine);
  if (const GpuFacts* const gpu = find_gpu(run, machine); gpu != nullptr && gpu->memory_bytes)
    return DeviceMemory{*gpu->memory_bytes, gpu->name};
  const auto known = machine_of(run, machine);
  return known ? std::optional(DeviceMemory{known->memory_bytes, known->id}) : std::nullopt;
}

// Of other programs the planner has measured figures on GPUs alone.
std::string missing_on(Platform platform, const Workload& workload) {
  return platform == Platform::cpu && !workload.family->own_trainer
             ? fmt::format("{} on a processor", workload.family->full_name)
             : "";
}

LayoutTask task_of(const PlannedRun& run, const Layout& layout) {
  return {run.spec.model, layout.num_gpus(), layout.micro_batch, run.spec.global_batch_size, run.spec.sequence_length};
}

// "{TP: 1, PP: 2, DP: 1, GA: 8}, MBS 1, recompute full"
std::string print_fitting(const PlannedRun& run, const Layout& layout) {
  const TrainSpec spec = with_layout(run.spec, layout);
  std::string text = print_layout(task_of(run, layout), spec.parallel) + fmt::format(", MBS {}", layout.micro_batch);
  if (layout.recompute != Recompute::none) text += fmt::format(", recompute {}", enum_name(layout.recompute));
  return text;
}

}  // namespace

std::string suggest_fitting(const PlannedRun& run, const Forecast& known, const PlannerSettings& planner) {
  // Elsewhere than in our own trainer the count is an estimate, and allocators need room to breathe.
  const double usable = known.workload.family->own_trainer ? 1 : 0.94;
  const auto fitting = find_fitting_layout(known.workload, planner.parameters, usable * known.room->bytes);
  if (!fitting) return "no layout of as many devices fits; use more devices, or a smaller model or sequence";
  return fmt::format("the nearest layout that fits: {}, which needs {}", print_fitting(run, fitting->layout),
                     format_gb(fitting->bytes));
}

std::string print_planned_layout(const PlannedRun& run) {
  return print_fitting(run, workload_of(run.spec, run.framework).workload.layout);
}

namespace {

Problem describe_misfit(const PlannedRun& run, const Forecast& known, const PlannerSettings& planner) {
  return {fmt::format("{} does not fit: {}", name_training(run), describe_memory(known)),
          fmt::format("models.{}", run.spec.model.name),
          suggest_fitting(run, known, planner) + "; or go on with --force"};
}

// Largest first, as far as they matter.
std::string list_parts(const MemoryEstimate& memory) {
  constexpr double k_smallest_share = 0.02;
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, bytes] : memory.parts())
    if (bytes > k_smallest_share * memory.total()) sorted.emplace_back(bytes, name);
  std::sort(sorted.rbegin(), sorted.rend());
  std::string text;
  for (const auto& [bytes, name] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, format_gb(bytes));
  return text;
}

}  // namespace

Forecast forecast(const PlannedRun& run, const MachineFacts& machine, const PlannerSettings& planner) {
  SpecWorkload read = workload_of(run.spec, run.framework);
  Forecast known{std::move(read.workload), std::move(read.missing), {}, room_of(run, machine)};
  if (known.missing.empty()) known.missing = missing_on(run.platform, known.workload);
  if (known.missing.empty()) known.memory = estimate_memory(known.workload, planner.parameters);
  return known;
}

std::vector<Problem> find_misfits(const SuitePlan& suite, const MachineFacts& machine, const PlannerSettings& planner) {
  std::vector<Problem> problems;
  for (const PlannedRun& run : suite.runs) {
    if (run.run > 1) continue;  // a repetition
    const Forecast known = forecast(run, machine, planner);
    if (!known.fits()) problems.push_back(describe_misfit(run, known, planner));
  }
  return problems;
}

std::string describe_memory(const Forecast& forecast) {
  if (!forecast.memory) return fmt::format("the planner does not predict {}", forecast.missing);
  std::string text = fmt::format("the heaviest rank needs {}", format_gb(forecast.memory->total()));
  if (forecast.room) text += fmt::format(" of {} ({})", format_gb(forecast.room->bytes), forecast.room->source);
  return text + ": " + list_parts(*forecast.memory);
}

Json forecast_to_json(const Forecast& forecast) {
  if (!forecast.memory) return Json{{"not_predicted", forecast.missing}};
  Json json{{"memory_bytes", forecast.memory->total()}, {"bytes", Json::object()}};
  for (const auto& [name, bytes] : forecast.memory->parts()) json["bytes"][name] = bytes;
  if (!forecast.room) return json;
  json["device_bytes"] = forecast.room->bytes;
  json["device_source"] = forecast.room->source;
  json["fits"] = forecast.fits();
  return json;
}

std::optional<Prediction> predict(const PlannedRun& run, const MachineFacts& machine, const PlannerSettings& planner,
                                  const std::optional<PeakInfo>& peak) {
  const Forecast known = forecast(run, machine, planner);
  Prediction prediction;
  prediction.family = known.workload.family->id;
  prediction.parameters = planner.source;
  if (known.memory) prediction.memory_gb = known.memory->total() * 1e-9;
  if (!known.missing.empty()) prediction.not_predicted = known.missing;
  if (!known.missing.empty()) return prediction;
  const std::optional<Machine> part =
      run.platform == Platform::cpu ? processor_of(run, machine, peak) : machine_of(run, machine);
  if (!part || part->peak(known.workload.precision) <= 0) return prediction;
  prediction.machine = part->id;
  prediction.calibrated = part->calibrated();
  prediction.step_time_seconds = predict_seconds(planner.parameters, *part, known.workload);
  return prediction;
}

}  // namespace tprimat

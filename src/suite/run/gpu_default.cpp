#include "run/gpu_default.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/printable.h"
#include "launch/frameworks.h"
#include "launch/torch_build.h"
#include "planner/memory.h"
#include "planner/spec_workload.h"
#include "result/peak.h"
#include "spec/hardware_catalogue.h"
#include "telemetry/gpu_libraries.h"
#include "text/format.h"
#include "text/yaml.h"

namespace tprimat::suite {
namespace {

constexpr double k_wanted_seconds = 120.0;  // of all trainings together
constexpr double k_assumed_share = 0.4;     // of the peak; an assumption, and said so wherever it counts
constexpr int64_t k_min_steps = 20, k_max_steps = 200;
constexpr int64_t k_steps_without_peak = 50;
constexpr int64_t k_sequence_length = 2048;  // tokens
constexpr int64_t k_sequences_per_gpu = 8;   // per step
constexpr std::array<int64_t, 4> k_micro_batches = {8, 4, 2, 1};
constexpr double k_usable_share = 0.94;                    // driver and libraries take some (run/forecast.cpp)
constexpr double k_reserved_bytes = 1024.0 * 1024 * 1024;  // that the native trainer leaves free (docs/gpu.md)
constexpr double k_memory_tolerance = 0.1;                 // 80 GB and 80 GiB are the same part
constexpr const char* k_strategy = "sharded";

double usable_bytes(double memory_bytes) { return k_usable_share * memory_bytes - k_reserved_bytes; }

// A slice of a GPU, or another part of the same name, has not the whole part's peak.
std::optional<double> known_peak(const std::string& name, std::optional<double> memory_bytes, Precision precision) {
  const auto part = find_hardware(name);
  if (part && part->memory_bytes && memory_bytes &&
      std::fabs(*memory_bytes / *part->memory_bytes - 1) > k_memory_tolerance)
    return std::nullopt;
  const auto peak = catalogue_peak(name, precision);
  return peak ? std::optional(peak->flops_per_second) : std::nullopt;
}

// bf16, except on a part whose row in the catalogue has fp16 alone.
Precision best_precision(const std::string& name) {
  const auto part = find_hardware(name);
  const bool lacks_bf16 = part && !part->dense_peak_flops.contains(Precision::bf16);
  return lacks_bf16 && part->dense_peak_flops.contains(Precision::fp16) ? Precision::fp16 : Precision::bf16;
}

std::optional<double> known_memory(const GpuFacts& gpu) {
  if (gpu.memory_bytes) return gpu.memory_bytes;
  const auto part = find_hardware(gpu.name);
  return part ? part->memory_bytes : std::nullopt;
}

std::string print_gpus(const DefaultGpus& gpus) { return fmt::format("{} x {}", gpus.count, gpus.name); }

// One model per family, and how it is trained.
struct Choice {
  std::vector<size_t> sizes;  // places in GpuModelFamily::models
  int64_t micro_batch = 1, steps = 0;
  bool fits = true;
};

class Chooser {
 public:
  Chooser(const DefaultGpus& gpus, std::vector<Framework> frameworks, const planner::ParameterSet& parameters)
      : gpus_(gpus), frameworks_(std::move(frameworks)), parameters_(parameters) {}

  Choice choose() const {
    Choice choice;
    for (const GpuModelFamily& family : gpu_model_families()) choice.sizes.push_back(largest_that_fits(family));
    while (shrink_slowest(choice)) {
    }
    choice.steps = steps_of(choice);
    choice.fits = fit(choice, 1);
    for (const int64_t micro_batch : k_micro_batches)
      if (micro_batch == 1 || fit(choice, micro_batch)) {
        choice.micro_batch = micro_batch;
        break;
      }
    return choice;
  }

 private:
  static const GpuModel& model_of(const Choice& choice, size_t family) {
    return gpu_model_families()[family].models[choice.sizes[family]];
  }

  TrainSpec spec_of(const GpuModel& model, int64_t micro_batch) const {
    TrainSpec spec;
    spec.model = model.spec;
    spec.sequence_length = k_sequence_length;
    spec.micro_batch_size = micro_batch;
    spec.global_batch_size = k_sequences_per_gpu * gpus_.count;
    spec.parallel.data = gpus_.count;
    spec.parallel.zero_stage = 3;
    spec.precision = gpus_.precision;
    return spec;
  }

  bool fits(const GpuModel& model, int64_t micro_batch) const {
    if (!gpus_.memory_bytes) return false;
    return std::ranges::all_of(frameworks_, [&](Framework framework) {
      const auto read = planner::workload_of(spec_of(model, micro_batch), framework, gpus_.platform);
      return !read.missing.empty() ||
             planner::estimate_memory(read.workload, parameters_).total() <= usable_bytes(*gpus_.memory_bytes);
    });
  }

  bool fit(const Choice& choice, int64_t micro_batch) const {
    for (size_t i = 0; i < choice.sizes.size(); ++i)
      if (!fits(model_of(choice, i), micro_batch)) return false;
    return true;
  }

  // The smallest where none fits: `tprimat run` then refuses it, with the figures.
  size_t largest_that_fits(const GpuModelFamily& family) const {
    for (size_t i = 0; i + 1 < family.models.size(); ++i)
      if (fits(family.models[i], 1)) return i;
    return family.models.size() - 1;
  }

  double step_seconds(const GpuModel& model) const {
    const double tokens = static_cast<double>(k_sequences_per_gpu * k_sequence_length);  // of each GPU
    return tokens * flops_per_token(model.spec, k_sequence_length, FlopFormula::causal) /
           (k_assumed_share * *gpus_.peak_flops);
  }

  double round_seconds(const Choice& choice) const {  // one step of every training
    double sum = 0;
    for (size_t i = 0; i < choice.sizes.size(); ++i) sum += step_seconds(model_of(choice, i));
    return sum * static_cast<double>(frameworks_.size());
  }

  // Whether the slowest model gave way to the next smaller one because too few steps fit into the time.
  bool shrink_slowest(Choice& choice) const {
    if (!gpus_.peak_flops || round_seconds(choice) * k_min_steps <= k_wanted_seconds) return false;
    size_t* slowest = nullptr;
    double seconds = 0;
    for (size_t i = 0; i < choice.sizes.size(); ++i) {
      const double own = step_seconds(model_of(choice, i));
      const bool has_smaller = choice.sizes[i] + 1 < gpu_model_families()[i].models.size();
      if (has_smaller && own > seconds) slowest = &choice.sizes[i], seconds = own;
    }
    if (slowest != nullptr) ++*slowest;
    return slowest != nullptr;
  }

  int64_t steps_of(const Choice& choice) const {
    if (!gpus_.peak_flops) return k_steps_without_peak;
    return std::clamp(static_cast<int64_t>(k_wanted_seconds / round_seconds(choice)), k_min_steps, k_max_steps);
  }

  const DefaultGpus& gpus_;
  std::vector<Framework> frameworks_;
  const planner::ParameterSet& parameters_;
};

// As a double-quoted YAML scalar on one line.
std::string quoted(const std::string& text) {
  YamlNode root;
  root["x"] = yaml_scalar(text, {}, true);
  std::string line = print_yaml(root, false);
  line = line.substr(line.find(": ") + 2);
  return line.substr(0, line.find('\n'));
}

std::string render_models(const Choice& choice) {
  std::string text = "models:\n";
  for (size_t i = 0; i < choice.sizes.size(); ++i) {
    const GpuModelFamily& family = gpu_model_families()[i];
    text += fmt::format("  {}: {}\n", family.key, family.models[choice.sizes[i]].yaml);
  }
  return text;
}

std::string render_layouts(std::string_view platform) {
  std::string text = fmt::format("parallelism:\n  {}:\n", k_strategy);
  for (const GpuModelFamily& family : gpu_model_families())
    text += fmt::format("    {}: {{{}: {{TP: 1, PP: 1, zero_stage: 3}}}}  # DP follows from num_gpus\n", family.key,
                        platform);
  return text;
}

std::string render_yaml(const DefaultGpus& gpus, const std::vector<Framework>& frameworks, const Choice& choice,
                        const std::vector<std::string>& reasons) {
  const std::string_view platform = enum_name(gpus.platform);
  std::vector<std::string_view> names;
  for (const Framework each : frameworks) names.push_back(enum_name(each));
  std::string text;
  for (const std::string& reason : reasons) text += "# " + printable(reason) + "\n";
  text += fmt::format(
      "experiment:\n  name: \"gpu_default\"\n  description: {}\n  methodology: \"{}\"\n  frameworks: [{}]\n",
      quoted("Two language models on " + print_gpus(gpus)), k_strategy, join(names, ", "));
  text += fmt::format("hardware:\n  platforms:\n    {}: {{gpu_model: {}, num_gpus: {}, framework: \"native\"}}\n",
                      platform, quoted(gpus.name), gpus.count);
  text += render_models(choice);
  text += fmt::format(
      "training:\n  data: {{micro_batch_size: {}, global_batch_size: {}, seq_length: {}}}\n"
      "  duration: {{max_steps: {}}}\n  optimizer: {{learning_rate: 3.0e-4}}\n  precision: {{default: \"{}\"}}\n",
      choice.micro_batch, k_sequences_per_gpu * gpus.count, k_sequence_length, choice.steps, enum_name(gpus.precision));
  return text + render_layouts(platform);
}

std::string explain_size(const DefaultGpus& gpus, const Choice& choice) {
  std::vector<std::string> names;
  for (size_t i = 0; i < choice.sizes.size(); ++i)
    names.push_back(gpu_model_families()[i].models[choice.sizes[i]].spec.full_name);
  const std::string what =
      fmt::format("no configuration: the default for {} trains {}", print_gpus(gpus), join(names, " and "));
  if (!gpus.memory_bytes) return what + ", its smallest shapes, because the GPU's memory is unknown";
  const std::string memory =
      fmt::format("{} of {} per GPU", format_memory(std::max(0.0, usable_bytes(*gpus.memory_bytes))),
                  format_memory(*gpus.memory_bytes));
  if (!choice.fits) return what + fmt::format(", its smallest shapes, which exceed {}", memory);
  const std::string time =
      gpus.peak_flops ? fmt::format(" and take {} steps in {}", k_min_steps, format_duration(k_wanted_seconds)) : "";
  return what + fmt::format(", the largest of its shapes that fit into {}{}", memory, time);
}

std::string explain_frameworks(const PeerFramework& peer) {
  if (peer.version.empty()) return fmt::format("it runs the native trainer alone: {}", peer.missing);
  return fmt::format("it runs the native trainer and PyTorch FSDP2 ({}) on the same work", peer.version);
}

}  // namespace

std::optional<DefaultGpus> find_default_gpus(const MachineFacts& machine, const EnvironmentReader& variable) {
  if (machine.platform == Platform::cpu) return std::nullopt;
  const std::vector<GpuFacts> all = used_gpus(machine.gpus, {machine.platform, variable});
  if (all.empty()) return std::nullopt;
  DefaultGpus gpus{machine.platform, all.front().name, static_cast<int64_t>(all.size()), known_memory(all.front()), {}};
  const bool alike = std::ranges::all_of(all, [&](const GpuFacts& each) { return each.name == gpus.name; });
  for (const GpuFacts& each : all)
    if (const auto memory = known_memory(each); gpus.memory_bytes)
      gpus.memory_bytes = memory ? std::optional(std::min(*gpus.memory_bytes, *memory)) : std::nullopt;
  if (!alike) {
    gpus.count = 1;
    gpus.left_out = {
        fmt::format("the {} GPUs are of different kinds, so the default takes one and the memory of the "
                    "smallest; choose with *_VISIBLE_DEVICES",
                    all.size())};
  }
  gpus.precision = best_precision(gpus.name);
  if (alike) gpus.peak_flops = known_peak(gpus.name, known_memory(all.front()), gpus.precision);
  return gpus;
}

PeerFramework find_peer_framework(Platform platform) {
  const FrameworkModule& module = require_framework(Framework::fsdp, platform);
  const std::string_view stack = platform == Platform::amd ? "ROCm" : "CUDA";
  const auto installed = module.find(checkout_of(module, {}, platform));
  if (!installed) return {"", fmt::format("PyTorch FSDP2 is not installed; to compare, {}", module.installing)};
  const std::string version = find_torch_build(installed->place).stack_of(platform);
  if (version.empty())
    return {"", fmt::format("PyTorch {} in {} is not built for {}", installed->version, installed->place, stack)};
  return {fmt::format("PyTorch {}, {} {}", installed->version, stack, version), ""};
}

GpuDefault choose_gpu_default(const DefaultGpus& gpus, const PeerFramework& peer,
                              const planner::ParameterSet& parameters) {
  std::vector<Framework> frameworks = {Framework::native};
  if (!peer.version.empty()) frameworks.push_back(Framework::fsdp);
  const Choice choice = Chooser(gpus, frameworks, parameters).choose();
  if (!choice.fits && !peer.version.empty())
    return choose_gpu_default(gpus, {"", "PyTorch FSDP2 needs more memory than a GPU has"}, parameters);
  GpuDefault chosen;
  chosen.reasons = {explain_size(gpus, choice), explain_frameworks(peer)};
  if (gpus.precision != Precision::bf16)
    chosen.reasons.push_back(fmt::format("it trains in {}: {} has no bf16, according to the hardware catalogue",
                                         enum_name(gpus.precision), gpus.name));
  chosen.reasons.insert(chosen.reasons.end(), gpus.left_out.begin(), gpus.left_out.end());
  chosen.yaml = render_yaml(gpus, frameworks, choice, chosen.reasons);
  return chosen;
}

std::string describe_expected(const SuitePlan& suite, const DefaultGpus& gpus,
                              const planner::ParameterSet& parameters) {
  double seconds = 0, memory = 0;
  std::set<int64_t> steps;
  for (const PlannedRun& run : suite.runs) {
    const TrainSpec& spec = run.spec;
    steps.insert(spec.steps);
    const double flops = flops_per_token(spec.model, spec.sequence_length, FlopFormula::causal) *
                         static_cast<double>(spec.tokens_per_step()) * static_cast<double>(spec.steps);
    if (gpus.peak_flops)
      seconds += flops / (k_assumed_share * *gpus.peak_flops * static_cast<double>(spec.parallel.ranks()));
    const auto read = planner::workload_of(spec, run.framework, run.platform);
    if (read.missing.empty()) memory = std::max(memory, planner::estimate_memory(read.workload, parameters).total());
  }
  const TrainSpec& first = suite.runs.front().spec;
  std::string text = fmt::format("{} training{} of {} steps, {} x {} tokens each (MBS {}, DP {})", suite.runs.size(),
                                 suite.runs.size() == 1 ? "" : "s", *steps.rbegin(), first.global_batch_size,
                                 first.sequence_length, first.micro_batch_size, first.parallel.data);
  if (memory > 0) text += fmt::format(", at most {} per GPU (predicted)", format_memory(memory));
  if (!gpus.peak_flops)
    return text + fmt::format("; time unknown: the hardware catalogue has no {} peak for {}", enum_name(gpus.precision),
                              gpus.name);
  return text + fmt::format("; about {} without start-up, an estimate at {} of {}", format_duration(seconds),
                            format_percent(k_assumed_share, 0), format_si(*gpus.peak_flops, "FLOP/s"));
}

std::string render_default_choice(const SuitePlan& suite) {
  std::string text;
  if (!suite.runs.empty())
    for (const std::string& sentence : suite.runs.front().default_choice) text += sentence + "\n";
  return text;
}

}  // namespace tprimat::suite

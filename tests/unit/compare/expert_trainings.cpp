#include "unit/compare/expert_trainings.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "result/peak.h"
#include "result/result_file.h"
#include "result/summary.h"
#include "spec/model_catalogue.h"

namespace tprimat::results::expert {
namespace {

void balance_accumulation(RunResult& r) {
  ParallelismConfig& p = r.parallelism_config;
  p.gradient_accumulation_steps =
      *r.training_config.global_batch_size / (*r.training_config.micro_batch_size * *p.data_parallel_size);
}

void set_layout(RunResult& r, int64_t tensor, int64_t pipeline, int64_t data, int64_t context) {
  ParallelismConfig& p = r.parallelism_config;
  p.tensor_model_parallel_size = tensor;
  p.pipeline_model_parallel_size = pipeline;
  p.data_parallel_size = data;
  p.context_parallel_size = context;
  r.training_config.num_gpus = r.gpu_info.device_count = tensor * pipeline * data * context;
  balance_accumulation(r);
}

void set_model(RunResult& r, const std::string& catalogue_name, const std::string& written_name) {
  r.model_info.shape = find_model(catalogue_name).value();
  r.model_info.name = written_name;
  r.model_info.full_name = r.model_info.shape->full_name;
  r.model_info.num_parameters = count_parameters(*r.model_info.shape).total();
}

// What all bases share: AdamW with ten steps of warm-up and a cosine.
Training base_of(const std::string& model_name, Framework framework, const std::string& device_name) {
  Training t;
  RunResult& r = t.facts;
  set_model(r, model_name, model_name);
  r.platform = Platform::nvd;
  r.framework = framework;
  r.precision = Precision::bf16;
  r.dataset = "c4-en";
  r.gpu_info.device_name = device_name;
  TrainingConfig& c = r.training_config;
  c.global_batch_size = 128, c.micro_batch_size = 2, c.sequence_length = 4096;
  c.learning_rate = 3e-4, c.min_learning_rate = 3e-5, c.warmup_steps = 10, c.schedule = "cosine";
  c.optimizer = "adamw", c.weight_decay = 0.1, c.clip_grad_norm = 1.0, c.seed = 1234, c.recompute = "none";
  r.parallelism_config.zero_stage = 1;
  set_layout(r, 1, 1, 8, 1);
  return t;
}

double scheduled_rate(const TrainingConfig& c, int64_t step) {
  const double peak = *c.learning_rate, end = *c.min_learning_rate;
  const int64_t warmup = *c.warmup_steps;
  if (step <= warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  if (c.schedule == "constant") return peak;
  const double share = static_cast<double>(step - warmup) / static_cast<double>(*c.max_steps - warmup);
  return end + (peak - end) / 2 * (1 + std::cos(M_PI * share));
}

// The first step compiles and allocates; a few after it are slower still.
double warmup_factor(const Training& t, int64_t step) { return step == 1 ? 6 : step <= 1 + t.slow_steps ? 1.15 : 1; }

double step_seconds(const Training& t) {
  const ModelInfo& m = t.facts.model_info;
  const int64_t length = *t.facts.training_config.sequence_length;
  const double flops = flops_per_token(*m.shape, length, FlopFormula::causal, m.trainable_parameters);
  const auto tokens = static_cast<double>(*t.facts.training_config.global_batch_size * length);
  return flops * tokens / (static_cast<double>(*t.facts.training_config.num_gpus) * t.flops_per_second);
}

void add_series(RunResult& r, const Training& t, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  const double seconds = step_seconds(t) * (1 + t.run_spread * normal(random));
  const double untrained = std::log(static_cast<double>(r.model_info.shape->vocab_size));
  for (int64_t step = 1; step <= t.steps; ++step) {
    const double time = seconds * warmup_factor(t, step) * (1 + t.noise * normal(random));
    const auto done = static_cast<double>(step - 1);
    r.step_times.push_back(std::round(time * 1e6) / 1e6);
    r.loss_values.push_back(2.5 + (untrained - 2.5) * std::exp(-done / 20) + 0.02 * normal(random));
    r.learning_rates.push_back(scheduled_rate(r.training_config, step));
    r.grad_norms.push_back(1 + 4 * std::exp(-done / 10) + 0.05 * normal(random));
  }
}

// Energy is counted from the end of the warm-up on, which only the summary knows.
void add_power(RunResult& r, double watts, const std::string& source, const SummaryOptions& options) {
  double seconds = 0;
  for (auto i = static_cast<size_t>(r.warmup.steps_excluded); i < r.step_times.size(); ++i)
    seconds += r.step_times[i] * static_cast<double>(entry_span(r, i));
  TelemetrySummary power;
  power.source = source;
  power.samples = static_cast<int64_t>(seconds);
  power.interval_seconds = 1;
  power.mean_power_watts = watts;
  power.energy_joules = watts * seconds;
  power.energy_valid = true;
  r.telemetry = {power};
  summarise_run(r, options);
}

RunResult measure(const Training& t, const std::string& side, int run) {
  RunResult r = t.facts;
  r.timestamp = fmt::format("2026-03-{:02}T0{}:00:00Z", side == "a" ? 2 : 5, run);
  r.training_config.max_steps = r.training_config.max_steps.value_or(t.steps);
  const uint64_t seed_of_side = t.seed > 0 ? t.seed : side == "a" ? 1 : 2;
  add_series(r, t, seed_of_side * 100 + static_cast<uint64_t>(t.repeats_first_run ? 1 : run));
  for (const auto& edit : t.series_edits) edit(r, run);
  SummaryOptions options;
  options.peak = r.derived.peak ? r.derived.peak : catalogue_peak(r.gpu_info.device_name, *t.facts.precision);
  options.usd_per_hour = t.usd_per_hour;
  if (r.warmup.method == WarmupMethod::fixed) options.fixed_warmup_steps = r.warmup.steps_excluded;
  summarise_run(r, options);
  if (t.watts) add_power(r, *t.watts, t.power_source, options);
  return r;
}

Training edited(Training t, const Edits& edits) {
  for (const Edit& edit : edits) edit(t);
  return t;
}

}  // namespace

std::vector<LoadedRun> result_files(const Training& training, const std::string& side) {
  std::vector<LoadedRun> files;
  for (int run = 1; run <= training.runs; ++run) {
    const RunResult result = measure(training, side, run);
    const std::string path = side + "/" + result_file_name(result, {"", "", run});
    Json json = run_result_to_json(result);
    for (const auto& edit : training.file_edits) edit(json, run);
    files.push_back({path, read_run_result(print_json(json), path)});
  }
  return files;
}

Training h100(const Edits& edits) {
  Training t = base_of("llama3.1_8b", Framework::mega, "NVIDIA H100 80GB HBM3");
  set_layout(t.facts, 2, 1, 4, 1);
  t.facts.framework_version = "core_r0.14.0";
  t.facts.gpu_info.software_stack = "cuda", t.facts.gpu_info.software_version = "12.8";
  t.facts.memory_metrics.peak_memory_allocated_gb = 61.4;
  t.facts.memory_metrics.measurement_method = "torch";
  return edited(std::move(t), edits);
}

Training mi300x(const Edits& edits) {
  Training t = base_of("llama3.1_8b", Framework::prim, "AMD Instinct MI300X");
  t.flops_per_second = 480e12;
  t.facts.platform = Platform::amd;
  t.facts.gpu_info.software_stack = "rocm", t.facts.gpu_info.software_version = "7.1.0";
  t.facts.training_config.micro_batch_size = 4;
  balance_accumulation(t.facts);
  t.facts.memory_metrics.peak_memory_allocated_gb = 118.0;
  t.facts.memory_metrics.measurement_method = "torch";
  return edited(std::move(t), edits);
}

Training b200_in_fp8(const Edits& edits) {
  Training t = base_of("llama3.1_8b", Framework::nemo, "NVIDIA B200");
  t.flops_per_second = 1500e12;
  t.facts.precision = Precision::fp8;
  t.facts.gpu_info.software_stack = "cuda", t.facts.gpu_info.software_version = "12.9";
  t.facts.effective_config.emplace()["fp8_recipe"] = "tensorwise";
  return edited(std::move(t), edits);
}

Training large_on_h100(const Edits& edits) {
  Training t = h100();
  set_model(t.facts, "llama3.1_70b", "llama3.1_70b");
  t.facts.training_config.global_batch_size = 256, t.facts.training_config.micro_batch_size = 1;
  t.flops_per_second = 420e12;
  set_layout(t.facts, 8, 4, 2, 1);
  return edited(std::move(t), edits);
}

Training experts_on_h100(const Edits& edits) {
  Training t = large_on_h100();
  set_model(t.facts, "mixtral_8x7b", "mixtral_8x7b");
  t.flops_per_second = 300e12;
  set_layout(t.facts, 2, 4, 8, 1);
  t.facts.parallelism_config.expert_model_parallel_size = 8;
  ExpertFigures& experts = t.facts.experts.emplace();
  experts.routing = Routing::learned, experts.dispatcher = Dispatcher::alltoall;
  return edited(std::move(t), edits);
}

Training small_on_cpu(const Edits& edits) {
  Training t = base_of("gpt2", Framework::native, "AMD EPYC 9654 96-Core Processor");
  t.facts.platform = Platform::cpu;
  t.facts.precision = Precision::fp32;
  t.flops_per_second = 1.5e12;
  t.facts.gpu_info.software_stack = "cpu";
  TrainingConfig& c = t.facts.training_config;
  c.global_batch_size = 8, c.sequence_length = 512;
  set_layout(t.facts, 1, 1, 1, 1);
  t.facts.derived.peak = PeakInfo{"measured:cpu:fp32", 3.1e12, "tprimat probe"};
  t.facts.memory_metrics.peak_memory_allocated_gb = 3.2;
  return edited(std::move(t), edits);
}

}  // namespace tprimat::results::expert

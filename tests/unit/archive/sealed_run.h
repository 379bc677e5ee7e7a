#pragma once

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "archive/archive_format.h"
#include "archive/verify.h"
#include "base/clock.h"
#include "extract/to_result.h"
#include "result/peak.h"
#include "result/result_file.h"
#include "result/run_result.h"
#include "result/step_record.h"
#include "result/summary.h"
#include "spec/config_hash.h"
#include "text/json_fields.h"

// Archives in memory: what a run of the suite leaves, and a log with the result that was extracted from it. Every fact
// that a file can state is stated, so that each can be changed.
namespace tprimat::results {

using Files = std::map<std::string, std::string>;

inline constexpr const char* k_run_result = "output/train_nvd_native_tiny.json";
inline constexpr const char* k_run_spec = "output/runs/train_nvd_native_tiny/train_spec.json";
inline constexpr const char* k_run_launch = "output/runs/train_nvd_native_tiny/launch.json";
inline constexpr const char* k_run_steps = "output/runs/train_nvd_native_tiny/steps.jsonl";
inline constexpr const char* k_run_profiled = "output/runs/train_nvd_native_tiny/profiled_steps.jsonl";
inline constexpr const char* k_run_trace = "output/train_nvd_native_tiny_profile/rank_0.json.gz";
inline constexpr const char* k_run_log = "output/training_native_tiny.log";
inline constexpr const char* k_other_log = "output/logs/a.log";
inline constexpr const char* k_other_result = "output/a.json";

inline constexpr const char* k_sealed_device = "NVIDIA H100 80GB HBM3";

inline Files seal_in_memory(Files files) {
  Manifest manifest;
  manifest.program = "tprimat test";
  manifest.created = "2026-01-02T00:00:00Z";
  manifest.redactions["secret"] = 1;
  for (const auto& [name, content] : files) manifest.files.push_back({name, std::ssize(content), sha256_hex(content)});
  files[k_manifest_name] = print_json(to_json(manifest));
  return files;
}

inline Verification verify_in_memory(const Files& files) {
  return verify_files(
      [&](const FileVisitor& visit) {
        for (const auto& [name, content] : files) visit(name, content);
      },
      "a.tar");
}

// Verified when sealed as they are.
inline Verification seal_and_verify_in_memory(const Files& files) { return verify_in_memory(seal_in_memory(files)); }

inline std::string list_all(const Verification& found) {
  std::string text;
  for (const Broken& each : found.broken)
    text += fmt::format("{}: {}: stated {}, {} in {}\n", each.file, each.what, each.stated, each.derived, each.witness);
  return text;
}

inline ModelSpec sealed_model() {
  return {.name = "tiny",
          .full_name = "Tiny 1",
          .num_layers = 4,
          .hidden_size = 64,
          .ffn_hidden_size = 128,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 16,
          .vocab_size = 256,
          .max_position_embeddings = 128,
          .rope_scaling = RopeScaling{},
          .sliding_window = 48,
          .full_attention_layers = 1,
          .attention_sinks = true,
          .latent_attention = LatentAttention{16, 16, 8, 16},
          .mamba = MambaMixers{.layers = 1,
                               .attention_layers = 1,
                               .inner_width = 128,
                               .heads = 4,
                               .groups = 2,
                               .state = 16,
                               .chunk = 16},
          .experts =
              Experts{.count = 4, .per_token = 2, .ffn_hidden_size = 128, .latent_size = 32, .capacity_factor = 1.25},
          .prediction_layers = 1,
          .shared_prediction = true};
}

inline TrainSpec sealed_spec() {
  TrainSpec spec;
  spec.model = sealed_model();
  spec.data.dataset = "synthetic";
  spec.optimizer.warmup_steps = 4;
  spec.optimizer.min_learning_rate = 3e-5;
  spec.parallel = {.strategy = "tp2_pp2_dp2", .tensor = 2, .pipeline = 2, .data = 2, .sequence_parallel = true};
  spec.parallel.expert = 2;
  spec.parallel.expert_tensor = 2;
  spec.parallel.pipeline_layout = "Ett|ttmL";
  spec.recompute_modules = {RecomputedModule::norms};
  spec.routing = Routing::learned;
  spec.dispatcher = Dispatcher::alltoall;
  spec.precision = Precision::fp16;
  spec.sequence_length = 64;
  spec.micro_batch_size = 2;
  spec.global_batch_size = 16;
  spec.steps = 30;
  spec.seed = 7;
  spec.threads = 2;
  spec.evaluation.interval = 10;
  spec.checkpoint.directory = "/data/checkpoints";
  spec.checkpoint.initial_weights = "/data/weights";
  spec.checkpoint.load = "/data/earlier";
  spec.checkpoint.load_step = 0;  // released weights: the first step follows
  spec.deterministic = true;
  spec.offload = Offload::none;
  return spec;
}

inline LaunchFacts sealed_launch() {
  LaunchFacts launch;
  launch.platform = Platform::nvd;
  launch.settings = {.fp8_hybrid = true,
                     .fp8_param = false,
                     .flash_attention = true,
                     .visible_devices = "0,1",
                     .cuda_alloc_conf = "expandable_segments:True",
                     .nccl_debug = "WARN",
                     .cuda_device_max_connections = 1,
                     .hsa_no_scratch_reclaim = false,
                     .hsa_enable_sdma = true,
                     .environment = {{"NCCL_ALGO", "Ring"}}};
  launch.launcher = Launcher::mpi;
  launch.nodes = 2;
  launch.checkpoint_directory = "checkpoints";
  launch.arguments = {"--threads", "2"};
  launch.installation = {.label = "old", .folder = "/opt/old", .image = "old:1", .python = "/opt/old/python3"};
  launch.fixed_warmup_steps = 5;
  launch.usd_per_hour = 12.0;
  return launch;
}

inline std::vector<StepRecord> sealed_steps(const TrainSpec& spec) {
  std::vector<StepRecord> steps;
  double clock = 1767312000.25;  // 2026-01-02
  for (int64_t step = 1; step <= spec.steps; ++step) {
    StepRecord record;
    record.step = step;
    record.time_seconds = step == 1 ? 5.125 : step == 17 ? 3.0 : 1.0 + 0.01 * static_cast<double>(step % 7);
    clock += record.time_seconds + 0.001;
    record.loss = 9.25 - 0.1 * static_cast<double>(step);
    record.learning_rate = learning_rate_at(spec.optimizer, step, spec.steps);
    record.grad_norm = 2.125 - 0.01 * static_cast<double>(step);
    record.tokens = spec.tokens_per_step();
    record.memory_allocated_gb = 40.0 + 0.125 * static_cast<double>(step % 3);
    record.memory_reserved_gb = 44.0;
    record.loss_scale = 4096.0;
    record.skipped = step == 9;
    if (step % 10 == 0) record.validation_loss = 8.5;
    record.expert_load = 1.5 + 0.01 * static_cast<double>(step % 5);
    record.dropped_share = 0.0625;
    record.aux_loss = 0.021;
    record.z_loss = 0.004;
    record.unix_time = clock;
    steps.push_back(record);
  }
  return steps;
}

inline TelemetrySummary sealed_telemetry() {
  return {.source = "nvml",
          .samples = 50,
          .interval_seconds = 0.5,
          .mean_utilisation = 0.9,
          .others_busy_threads = 1.0,
          .mean_power_watts = 500.0,
          .energy_joules = 13000.0,
          .peak_memory_used_gb = 50.0,
          .mean_temperature_celsius = 60.0,
          .mean_clock_hz = 1.7e9,
          .mean_memory_clock_hz = 2.6e9,
          .throttle_shares = std::map<std::string, double>{{"power", 0.25}},
          .energy_valid = true,
          .energy_note = "counted",
          .notes = std::vector<std::string>{"none"}};
}

inline void measure_machine(RunResult& run) {
  run.environment = {{"cpu", "Xeon"},       {"tprimat", "0.1.0"},       {"cuda", "13.0"},
                     {"kernel", "Linux 6"}, {"cpu_threads_used", "16"}, {"cpu_threads_usable", "64"}};
  run.gpu_info.device_name = k_sealed_device;
  run.gpu_info.total_memory_gb = 85.0;
  run.gpu_info.gpu_cores = 16896;
  run.gpu_info.software_stack = "cuda";
  run.gpu_info.software_version = "13.0";
  run.gpu_info.pytorch_version = "2.9.0";
  run.telemetry = {sealed_telemetry()};
  const std::vector<double> each(30, 1.5);
  run.step_telemetry = {each, each, each, each, each, std::map<std::string, std::vector<double>>{{"power", each}}};
  run.memory_metrics.avg_memory_reserved_gb = 44.0;
  run.memory_metrics.peak_memory_reserved_gb = 44.0;
  run.memory_metrics.measurement_method = "allocated: the trainer's own count";
  run.prediction = {45.0, 1.1, "native", "H100", "built-in", true, "power"};
}

inline void add_steps(RunResult& run, const std::vector<StepRecord>& steps) {
  run.skipped_updates = 0;
  run.reported.emplace();
  run.reported->unix_time.emplace();
  run.reported->loss_scale.emplace();
  ExpertFigures& experts = run.experts.value();
  for (auto* series : {&experts.load_values, &experts.dropped_values, &experts.aux_loss_values, &experts.z_loss_values})
    series->emplace();
  for (const StepRecord& record : steps) {
    experts.load_values->push_back(*record.expert_load);
    experts.dropped_values->push_back(*record.dropped_share);
    experts.aux_loss_values->push_back(*record.aux_loss);
    experts.z_loss_values->push_back(*record.z_loss);
    run.step_times.push_back(record.time_seconds);
    run.loss_values.push_back(*record.loss);
    run.learning_rates.push_back(*record.learning_rate);
    run.grad_norms.push_back(*record.grad_norm);
    run.memory_values.push_back(*record.memory_allocated_gb);
    run.reported->unix_time->push_back(*record.unix_time);
    run.reported->loss_scale->push_back(*record.loss_scale);
    *run.skipped_updates += record.skipped.value_or(false);
  }
}

// Steps 32 to 33, after one in which the profiler got ready.
inline std::vector<StepRecord> sealed_profiled_steps() {
  std::vector<StepRecord> steps;
  for (const int64_t step : {31, 32, 33})
    steps.push_back({.step = step, .time_seconds = 1.0 + 0.125 * static_cast<double>(step % 4)});
  return steps;
}

inline RunProfile sealed_profile() {
  RunProfile profile{.profiler = Profiler::own, .first_step = 32, .last_step = 33};
  profile.files = {"train_nvd_native_tiny_profile/rank_0.json.gz"};
  for (const StepRecord& record : sealed_profiled_steps())
    if (record.step >= profile.first_step) profile.step_times.push_back(record.time_seconds);
  return profile;
}

inline RunResult sealed_result(const TrainSpec& spec, const std::vector<StepRecord>& steps) {
  RunResult run;
  run.platform = Platform::nvd;
  run.framework = Framework::native;
  run.framework_installation = sealed_launch().installation->label;
  run.framework_version = "0.1.0";
  run.timestamp = "2026-01-02T00:00:00Z";
  run.attempt = 1;
  fill_asked_facts(run, spec);
  run.model_info.trainable_parameters = 30000;
  measure_machine(run);
  run.gpu_info.device_count = spec.parallel.ranks();
  TrainSpec asked = spec;
  asked.checkpoint.directory = sealed_launch().checkpoint_directory;
  run.config_hash = hash_config(asked, sealed_launch());
  run.effective_config = std::map<std::string, std::string>{{"threads", "2"}};
  run.source = {.log = "/data/output/training_native_tiny.log",
                .steps_file = "/data/output/runs/train_nvd_native_tiny/steps.jsonl",
                .format = "tprimat-steps"};
  run.warnings = {"a warning"};
  run.profile = sealed_profile();
  add_steps(run, steps);
  summarise_run(run, {sealed_launch().fixed_warmup_steps, catalogue_peak(run.gpu_info.device_name, spec.precision),
                      sealed_launch().usd_per_hour});
  return run;
}

// As render_log_line() of the trainer.
inline std::string sealed_log(const TrainSpec& spec, const std::vector<StepRecord>& steps) {
  std::string text = fmt::format("model {} | parameters {} | precision {} | threads 2 | allocated 40.000 GB\n",
                                 spec.model.name, count_parameters(spec.model).total(), enum_name(spec.precision));
  for (const StepRecord& record : steps) {
    text += fmt::format(
        " iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): {:.1f} | "
        "tokens per second: {:.1f} | learning rate: {:.6E} | global batch size: {:5d} | lm loss: {:.6E} | "
        "loss scale: {:.1f} | grad norm: {:.3f} |{}\n",
        record.step, spec.steps, record.step * spec.global_batch_size, record.time_seconds * 1e3,
        static_cast<double>(spec.tokens_per_step()) / record.time_seconds, *record.learning_rate,
        spec.global_batch_size, *record.loss, *record.loss_scale, *record.grad_norm,
        record.skipped.value_or(false) ? " number of skipped iterations:   1 |" : "");
    if (record.validation_loss)
      text += fmt::format(" validation loss at iteration {} | lm loss value: {:.6E} | lm loss PPL: {:.6E} |\n",
                          record.step, *record.validation_loss, std::exp(*record.validation_loss));
  }
  return text;
}

inline std::string lines_of(const std::vector<StepRecord>& steps) {
  std::string lines;
  for (const StepRecord& record : steps) lines += step_record_to_line(record) + "\n";
  return lines;
}

inline Files sealed_run() {
  const TrainSpec spec = sealed_spec();
  const std::vector<StepRecord> steps = sealed_steps(spec);
  return {{k_run_result, print_json(run_result_to_json(sealed_result(spec, steps)))},
          {k_run_spec, print_json(train_spec_to_json(spec))},
          {k_run_launch, print_json(launch_facts_to_json(sealed_launch()))},
          {k_run_steps, lines_of(steps)},
          {k_run_profiled, lines_of(sealed_profiled_steps())},
          {k_run_trace, "a trace"},
          {k_run_log, sealed_log(spec, steps)}};
}

inline RunResult extract_in_memory(const std::string& log) {
  return logs::make_result(logs::read_log_text(log, {}), "/x/logs/a.log", {});
}

inline Files seal_log(const std::string& log) {
  return {{k_other_log, log}, {k_other_result, print_json(run_result_to_json(extract_in_memory(log)))}};
}

inline Files sealed_extraction() {
  std::string text = " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 1000000\n";
  text +=
      "  seq_length ...................................... 64\n  micro_batch_size ................................ 2\n";
  for (int step = 1; step <= 30; ++step)
    text += fmt::format(
        " [2026-01-02 00:{:02d}:{:02d}] iteration {:8}/      30 | consumed samples: {:12} | elapsed time per iteration "
        "(ms): {:.1f} | throughput per GPU (TFLOP/s/GPU): 401.5 | learning rate: 1.000000E-04 | global batch size:   "
        " 16 | lm loss: {:.6E} | loss scale: 1.0 | grad norm: {:.3f} |\n",
        step / 6, step % 6 * 10, step, step * 16, 10000.0 + step % 7, 9.25 - 0.1 * step, 2.125 - 0.01 * step);
  return seal_log(text);
}

}  // namespace tprimat::results

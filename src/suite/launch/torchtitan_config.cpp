#include "launch/torchtitan_config.h"

#include <fmt/format.h>

#include <limits>

#include "launch/argument_list.h"

namespace tprimat::suite {
namespace {

Json list_job(const LaunchRequest& request) {
  return {{"dump_folder", request.paths.folder + "/torchtitan"}, {"description", request.spec.model.name}};
}

// Figures are in the step records, so the log needs no colours.
Json list_metrics() { return {{"log_freq", 1}, {"disable_color_printing", true}, {"enable_tensorboard", false}}; }

// The adapter registers the shape under these two names.
Json list_model(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  Json converters = Json::array();
  if (spec.precision == Precision::fp8) converters.push_back("quantize.linear.float8");
  return {{"name", std::string(enum_name(titan_family(spec.model)))},
          {"flavor", spec.model.name},
          {"hf_assets_path", request.paths.folder},
          {"converters", converters}};
}

Json list_optimizer(const OptimizerSpec& optimizer) {
  return {{"name", "AdamW"},          {"lr", optimizer.learning_rate}, {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2}, {"eps", optimizer.epsilon},      {"weight_decay", optimizer.weight_decay},
          {"implementation", "fused"}};
}

// A decay over none of the steps is a constant rate.
Json list_schedule(const OptimizerSpec& optimizer) {
  const bool constant = optimizer.schedule == ScheduleKind::constant;
  Json schedule = {{"warmup_steps", optimizer.warmup_steps},
                   {"decay_type", optimizer.schedule == ScheduleKind::linear ? "linear" : "cosine"},
                   {"min_lr_factor", optimizer.min_learning_rate / optimizer.learning_rate}};
  if (constant) schedule["decay_ratio"] = 0.0;
  return schedule;
}

// One call of a pipeline takes the whole batch of a rank, and cuts it into micro-batches itself.
Json list_training(const TrainSpec& spec) {
  const bool pipeline = spec.parallel.pipeline > 1, wide = spec.precision == Precision::fp32;
  const double clip = spec.optimizer.clip_grad_norm;
  return {{"dataset", spec.data.dataset},
          {"local_batch_size", spec.micro_batch_size * (pipeline ? spec.gradient_accumulation_steps() : 1)},
          {"global_batch_size", spec.global_batch_size},
          {"seq_len", spec.sequence_length},
          {"max_norm", clip > 0 ? clip : std::numeric_limits<double>::infinity()},
          {"steps", spec.steps},
          {"enable_cpu_offload", spec.offload.value_or(Offload::none) != Offload::none},
          {"dtype", spec.optimizer.master_weights ? "float32" : "bfloat16"},
          {"mixed_precision_param", wide ? "float32" : "bfloat16"},
          {"mixed_precision_reduce", "float32"}};
}

// "default" shards a block's weights again after its forward pass, unless there is a pipeline.
const char* reshard_policy(const ParallelSpec& layout) {
  if (layout.zero_stage == 2) return "never";
  return layout.pipeline > 1 ? "always" : "default";
}

// Without EP torchtitan splits each expert over the tensor-parallel ranks, whatever its ETP.
void add_expert_layout(const TrainSpec& spec, Json& parallelism) {
  const bool fused = spec.dispatcher == Dispatcher::deepep;
  parallelism["expert_parallel_degree"] = spec.parallel.expert_ranks();
  parallelism["expert_tensor_parallel_degree"] =
      spec.parallel.expert_ranks() > 1 ? spec.parallel.expert_tensor_ranks() : 1;
  parallelism["expert_parallel_comm_backend"] = fused ? "deepep" : "standard";
}

Json list_parallelism(const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  const int64_t ends = layout.ends_as_layers ? 1 : 0;
  Json parallelism = {{"data_parallel_replicate_degree", 1},
                      {"data_parallel_shard_degree", layout.data},
                      {"fsdp_reshard_after_forward", reshard_policy(layout)},
                      {"tensor_parallel_degree", layout.tensor},
                      {"context_parallel_degree", layout.context},
                      {"pipeline_parallel_degree", layout.pipeline}};
  if (spec.model.experts) add_expert_layout(spec, parallelism);
  if (layout.pipeline == 1) return parallelism;
  const int64_t units = layout.pipeline_units(spec.model.num_layers);
  parallelism["pipeline_parallel_schedule"] = layout.virtual_pipeline > 1 ? "Interleaved1F1B" : "1F1B";
  parallelism["pipeline_parallel_layers_per_stage"] = units / (layout.pipeline * layout.virtual_pipeline);
  parallelism["pipeline_parallel_first_stage_less_layers"] = ends;
  parallelism["pipeline_parallel_last_stage_less_layers"] = ends;
  parallelism["pipeline_parallel_microbatch_size"] = spec.micro_batch_size;
  return parallelism;
}

Json list_recompute(Recompute recompute) {
  return {{"mode", std::string(enum_name(recompute))}, {"selective_ac_option", "op"}};
}

// With one scale per tensor, gradients are E5M2 and the rest E4M3; its recipe with one scale per row has E4M3 alone.
// The head stays in bf16.
Json list_float8(const PlatformSettings& settings) {
  const bool gathers = settings.fp8_param.value_or(false);
  Json float8 = {{"filter_fqns", std::vector<std::string>{"output"}},
                 {"enable_fsdp_float8_all_gather", gathers},
                 {"precompute_float8_dynamic_scale_for_fsdp", gathers}};
  if (!settings.fp8_hybrid.value_or(true)) float8["recipe_name"] = "rowwise";
  return float8;
}

// The first step builds kernels; the limit of 100 s that torchtitan has for the others is short on a processor.
Json list_limits() { return {{"init_timeout_seconds", 1800}, {"train_timeout_seconds", 600}}; }

// A float of TOML has a point or an exponent.
std::string write_toml_number(double value) {
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;  // n: inf
}

std::string write_toml_text(const std::string& text) {
  std::string written = "\"";
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\')
      written += {'\\', each};
    else if (byte < 0x20 || byte == 0x7f)
      written += fmt::format("\\u{:04x}", byte);
    else
      written += each;
  }
  return written + "\"";
}

std::string write_toml_value(const Json& value) {
  if (value.is_number_float()) return write_toml_number(value.get<double>());
  if (value.is_string()) return write_toml_text(value.text());
  if (!value.is_array()) return print_json_line(value);
  std::string list;
  for (const Json& item : value) list += (list.empty() ? "" : ", ") + write_toml_value(item);
  return "[" + list + "]";
}

}  // namespace

TitanFamily titan_family(const ModelSpec& model) {
  if (model.latent_attention) return TitanFamily::deepseek_v3;
  if (model.attention_sinks.value_or(false)) return TitanFamily::gpt_oss;
  if (model.qk_norm || model.head_dim * model.num_attention_heads != model.hidden_size) return TitanFamily::qwen3;
  return model.experts ? TitanFamily::llama4 : TitanFamily::llama3;
}

bool shards_with_fsdp(const ParallelSpec& layout) { return layout.data * layout.context > 1; }

Json list_titan_settings(const LaunchRequest& request) {
  const TrainSpec& spec = request.spec;
  Json sections = {{"job", list_job(request)},
                   {"metrics", list_metrics()},
                   {"model", list_model(request)},
                   {"optimizer", list_optimizer(spec.optimizer)},
                   {"lr_scheduler", list_schedule(spec.optimizer)},
                   {"training", list_training(spec)},
                   {"parallelism", list_parallelism(spec)},
                   {"checkpoint", {{"enable", false}}},
                   {"activation_checkpoint", list_recompute(spec.recompute)},
                   {"compile", {{"enable", false}}}};
  if (spec.precision == Precision::fp8) sections["quantize.linear.float8"] = list_float8(request.settings);
  sections["comm"] = list_limits();
  sections["debug"] = {{"seed", spec.seed}, {"deterministic", spec.deterministic.value_or(false)}};
  if (spec.model.experts) sections["debug"]["moe_force_load_balance"] = spec.routing == Routing::balanced;
  return sections;
}

std::string write_titan_config(const LaunchRequest& request) {
  const Json sections = list_titan_settings(request);
  std::string text;
  for (const auto& [name, settings] : sections.items()) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", name);
    for (const auto& [key, value] : settings.items()) text += fmt::format("{} = {}\n", key, write_toml_value(value));
  }
  return text;
}

}  // namespace tprimat::suite

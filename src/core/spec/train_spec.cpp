#include "spec/train_spec.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/error.h"
#include "spec/pipeline_layout.h"
#include "text/json_fields.h"

namespace tprimat {
namespace {

// Above any use, and small enough that products of two of them do not overflow.
constexpr int64_t k_max_count = int64_t{1} << 30;

void require_count(Findings& findings, std::string_view key, int64_t value, int64_t least = 1) {
  findings.require(value >= least && value <= k_max_count,
                   fmt::format("{} must be between {} and {}, got {}", key, least, k_max_count, value));
}

void check_parallel_counts(Findings& findings, const ParallelSpec& parallel) {
  require_count(findings, "tensor_model_parallel_size", parallel.tensor);
  require_count(findings, "pipeline_model_parallel_size", parallel.pipeline);
  require_count(findings, "virtual_pipeline_model_parallel_size", parallel.virtual_pipeline);
  require_count(findings, "data_parallel_size", parallel.data);
  require_count(findings, "context_parallel_size", parallel.context);
}

void check_loss_scale(Findings& findings, const LossScaleSpec& scale) {
  require_count(findings, "loss_scale.window", scale.window);
  findings.require(scale.minimum > 0 && scale.initial >= scale.minimum && std::isfinite(scale.initial),
                   fmt::format("loss_scale.initial must be at least loss_scale.minimum, which must be positive; got {} "
                               "and {}",
                               scale.initial, scale.minimum));
}

void check_anomalies(Findings& findings, const AnomalySpec& anomalies) {
  findings.require(anomalies.spike_factor == 0 || (anomalies.spike_factor > 1 && std::isfinite(anomalies.spike_factor)),
                   fmt::format("anomalies.spike_factor must be 0 or above 1, got {}", anomalies.spike_factor));
  findings.require(anomalies.not_finite != OnAnomaly::record,
                   "anomalies.not_finite must be stop or skip: an update with NaN would corrupt every weight");
}

void check_counts(Findings& findings, const TrainSpec& spec) {
  require_count(findings, "sequence_length", spec.sequence_length);
  require_count(findings, "micro_batch_size", spec.micro_batch_size);
  require_count(findings, "global_batch_size", spec.global_batch_size);
  require_count(findings, "steps", spec.steps);
  findings.require(spec.threads >= 0 && spec.threads <= 4096,
                   fmt::format("threads must be between 0 (all) and 4096, got {}", spec.threads));
  check_parallel_counts(findings, spec.parallel);
  require_count(findings, "evaluation.interval", spec.evaluation.interval, 0);
  require_count(findings, "evaluation.batches", spec.evaluation.batches);
  require_count(findings, "checkpoint.save_interval", spec.checkpoint.save_interval, 0);
  require_count(findings, "checkpoint.keep_last_n", spec.checkpoint.keep_last_n);
  if (spec.checkpoint.load_step) require_count(findings, "checkpoint.load_step", *spec.checkpoint.load_step, 0);
  check_loss_scale(findings, spec.loss_scale);
  check_anomalies(findings, spec.anomalies);
  findings.require(spec.parallel.zero_stage >= 0 && spec.parallel.zero_stage <= 3,
                   fmt::format("zero_stage must be between 0 and 3, got {}", spec.parallel.zero_stage));
  findings.require(!spec.data.dataset.empty(), "dataset is empty", "\"synthetic\", or the prefix of a .bin/.idx pair");
}

// NaN fails every one of these and the next comparisons.
void check_moments(Findings& findings, const OptimizerSpec& optimizer) {
  findings.require(optimizer.beta1 >= 0 && optimizer.beta1 < 1,
                   fmt::format("beta1 must be in [0, 1), got {}", optimizer.beta1));
  findings.require(optimizer.beta2 >= 0 && optimizer.beta2 < 1,
                   fmt::format("beta2 must be in [0, 1), got {}", optimizer.beta2));
  findings.require(optimizer.epsilon > 0 && std::isfinite(optimizer.epsilon),
                   fmt::format("epsilon must be positive, got {}", optimizer.epsilon));
}

void check_optimizer(Findings& findings, const OptimizerSpec& optimizer, int64_t steps) {
  const auto finite_from = [](double value, double least) { return value >= least && std::isfinite(value); };
  findings.require(optimizer.type == "adamw" || optimizer.type == "adam",
                   fmt::format("optimizer must be adamw or adam, got \"{}\"", optimizer.type));
  findings.require(optimizer.learning_rate > 0 && std::isfinite(optimizer.learning_rate),
                   fmt::format("learning_rate must be positive, got {}", optimizer.learning_rate));
  findings.require(optimizer.min_learning_rate >= 0 && optimizer.min_learning_rate <= optimizer.learning_rate,
                   fmt::format("min_learning_rate must be between 0 and learning_rate {}, got {}",
                               optimizer.learning_rate, optimizer.min_learning_rate));
  check_moments(findings, optimizer);
  findings.require(finite_from(optimizer.weight_decay, 0),
                   fmt::format("weight_decay must not be negative, got {}", optimizer.weight_decay));
  findings.require(finite_from(optimizer.clip_grad_norm, 0),
                   fmt::format("clip_grad_norm must not be negative, got {}", optimizer.clip_grad_norm));
  findings.require(
      optimizer.warmup_steps >= 0 && optimizer.warmup_steps < steps,
      fmt::format("warmup_steps must be at least 0 and below the {} steps, got {}", steps, optimizer.warmup_steps));
}

void check_batch(Findings& findings, const TrainSpec& spec) {
  const int64_t unit = spec.micro_batch_size * spec.parallel.data;
  const int64_t next = (spec.global_batch_size + unit - 1) / unit * unit;
  findings.require(
      spec.global_batch_size % unit == 0,
      fmt::format("global_batch_size {} is not a multiple of micro_batch_size {} x data_parallel_size {} = {}",
                  spec.global_batch_size, spec.micro_batch_size, spec.parallel.data, unit),
      fmt::format("global_batch_size {} would pass", next));
}

void check_sequence(Findings& findings, const TrainSpec& spec) {
  findings.require(spec.sequence_length <= spec.model.max_position_embeddings,
                   fmt::format("sequence_length {} is longer than the model's max_position_embeddings {}",
                               spec.sequence_length, spec.model.max_position_embeddings));
  // Megatron-LM balances causal work by giving each rank two chunks, one from each end.
  const int64_t chunks = spec.parallel.context == 1 ? 1 : 2 * spec.parallel.context;
  findings.require(spec.sequence_length % chunks == 0,
                   fmt::format("sequence_length {} is not a multiple of 2 x context_parallel_size = {}",
                               spec.sequence_length, chunks));
}

void check_tensor_parallel(Findings& findings, const TrainSpec& spec) {
  const ModelSpec& model = spec.model;
  const int64_t tensor = spec.parallel.tensor;
  const auto divides = [&](std::string_view key, int64_t value) {
    findings.require(value % tensor == 0,
                     fmt::format("tensor_model_parallel_size {} does not divide {} {}", tensor, key, value));
  };
  divides("num_attention_heads", model.num_attention_heads);
  divides("ffn_hidden_size", model.ffn_hidden_size);
  findings.require(model.vocab_size >= tensor,
                   fmt::format("tensor_model_parallel_size {} is above vocab_size {}: a rank would have no token",
                               tensor, model.vocab_size));
  findings.require(
      model.num_key_value_heads % tensor == 0 || tensor % model.num_key_value_heads == 0,
      fmt::format("tensor_model_parallel_size {} neither divides num_key_value_heads {} nor is a multiple of it",
                  tensor, model.num_key_value_heads));
}

// How the layers are cut: by the rule, or as stated.
void check_stages(Findings& findings, const TrainSpec& spec) {
  const ParallelSpec& layout = spec.parallel;
  if (layout.pipeline_layout) {
    const std::string fault =
        find_layout_fault(*layout.pipeline_layout, spec.model, layout.pipeline, layout.virtual_pipeline);
    findings.require(fault.empty(), fault);
    return findings.require(!layout.ends_as_layers,
                            "pipeline_layout and embedding_and_loss_as_layers contradict each other");
  }
  const int64_t num_layers = spec.model.num_layers, stages = layout.pipeline * layout.virtual_pipeline;
  findings.require(layout.pipeline_units(num_layers) % stages == 0,
                   fmt::format("num_layers {}{} is not a multiple of pipeline_model_parallel_size {} x "
                               "virtual_pipeline_model_parallel_size {}",
                               num_layers, layout.ends_as_layers ? " + embedding + loss" : "", layout.pipeline,
                               layout.virtual_pipeline));
}

void check_pipeline(Findings& findings, const TrainSpec& spec) {
  check_stages(findings, spec);
  findings.require(!spec.parallel.ends_as_layers || spec.parallel.pipeline > 1,
                   "embedding_and_loss_as_layers needs pipeline_model_parallel_size above 1");
  findings.require(spec.parallel.virtual_pipeline == 1 || spec.parallel.pipeline > 1,
                   "virtual_pipeline_model_parallel_size above 1 needs pipeline_model_parallel_size above 1");
  if (spec.parallel.virtual_pipeline > 1)
    findings.require(spec.gradient_accumulation_steps() % spec.parallel.pipeline == 0,
                     fmt::format("the interleaved pipeline schedule needs a number of micro-batches divisible by "
                                 "pipeline_model_parallel_size {}, got {}",
                                 spec.parallel.pipeline, spec.gradient_accumulation_steps()));
}

void check_sequence_parallel(Findings& findings, const TrainSpec& spec) {
  const int64_t tensor = spec.parallel.tensor;
  const int64_t tokens = spec.micro_batch_size * spec.sequence_length / spec.parallel.context;
  findings.require(!spec.parallel.sequence_parallel || tokens % tensor == 0,
                   fmt::format("sequence_parallel splits the {} tokens of a micro batch over "
                               "tensor_model_parallel_size {}, which does not divide them",
                               tokens, tensor));
}

}  // namespace

std::vector<Problem> check_train_spec(const TrainSpec& spec, const std::string& where) {
  Findings findings(where);
  findings.add(check_model(spec.model, where));
  check_counts(findings, spec);
  check_optimizer(findings, spec.optimizer, spec.steps);
  if (!findings.empty()) return findings.take();  // the checks below divide by these numbers
  check_batch(findings, spec);
  check_sequence(findings, spec);
  check_tensor_parallel(findings, spec);
  check_pipeline(findings, spec);
  check_sequence_parallel(findings, spec);
  return findings.take();
}

std::string describe_optimizer(const OptimizerSpec& optimizer) {
  std::string text = optimizer.type;
  if (optimizer.moments != MomentFormat::fp32) text += fmt::format(", moments in {}", enum_name(optimizer.moments));
  if (!optimizer.master_weights) text += ", no master weights";
  return text;
}

double learning_rate_at(const OptimizerSpec& optimizer, int64_t step, int64_t total_steps) {
  CHECK(step >= 1);
  const double peak = optimizer.learning_rate, floor = optimizer.min_learning_rate;
  if (step <= optimizer.warmup_steps)
    return peak * static_cast<double>(step) / static_cast<double>(optimizer.warmup_steps);
  if (optimizer.schedule == ScheduleKind::constant) return peak;
  if (step >= total_steps) return floor;
  const double ratio =
      static_cast<double>(step - optimizer.warmup_steps) / static_cast<double>(total_steps - optimizer.warmup_steps);
  const double share =
      optimizer.schedule == ScheduleKind::linear ? 1 - ratio : (1 + std::cos(std::numbers::pi * ratio)) / 2;
  return floor + share * (peak - floor);
}

Json train_spec_to_json(const TrainSpec& spec) { return to_json(spec); }
bool has_flat_experts(const Json& model) {
  return model.is_object() && model.contains("num_experts") && !model.at("num_experts").is_null();
}

Json with_experts(Json model) {
  if (!has_flat_experts(model)) return model;
  if (!model.contains("experts") || model.at("experts").is_null()) {
    Json parts = to_json(Experts());
    parts["count"] = model.at("num_experts");
    if (model.contains("experts_per_token")) parts["per_token"] = model.at("experts_per_token");
    if (model.contains("ffn_hidden_size")) parts["ffn_hidden_size"] = model.at("ffn_hidden_size");
    model["experts"] = parts;
  }
  model.erase("num_experts");
  model.erase("experts_per_token");
  return model;
}

TrainSpec train_spec_from_json(const Json& json, const std::string& where) {
  if (!json.is_object() || !json.contains("model") || !has_flat_experts(json.at("model")))
    return from_json<TrainSpec>(json, where);
  Json upgraded = json;
  upgraded["model"] = with_experts(json.at("model"));
  return from_json<TrainSpec>(upgraded, where);
}

std::vector<Problem> find_unknown_train_spec_keys(const Json& json, const std::string& where) {
  std::vector<std::string> keys;
  find_unknown_keys<TrainSpec>(json, "", keys);
  std::vector<Problem> problems;
  for (const std::string& key : keys)
    problems.push_back({"a training specification has no key " + key, where, "correct its spelling, or remove it"});
  return problems;
}

}  // namespace tprimat

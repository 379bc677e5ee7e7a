#include "planner/planned_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "spec/hardware_catalogue.h"
#include "spec/model_catalogue.h"
#include "text/format.h"
#include "text/words.h"
#include "text/yaml.h"

namespace tprimat::planner {
namespace {

constexpr const char* k_strategy = "planned";

// Keys of a configuration are letters, digits, '_' and '-'.
std::string key_of(const std::string& name) {
  std::string key = name;
  std::ranges::replace_if(
      key, [](char c) { return c != '-' && !is_digit(c) && !is_letter(c); }, '_');
  return key;
}

Platform platform_of(const Machine& machine) {
  if (machine.cores > 0) return Platform::cpu;
  if (const auto part = find_hardware(machine.id)) return part->platform;
  if (machine.architecture.empty())
    throw Error(Problem{fmt::format("a configuration needs the vendor of {}, which the catalogue lacks", machine.id),
                        "--yaml", "plan without it"});
  return machine.architecture.starts_with("cdna") ? Platform::amd : Platform::nvd;
}

Precision require_precision(PlanPrecision precision) {
  if (const auto known = parse_enum<Precision>(enum_name(precision))) return *known;
  throw Error(Problem{fmt::format("a configuration cannot select {}", enum_name(precision)), "--yaml",
                      "choose bf16, fp16 or fp8"});
}

template <class Value>
void state(YamlNode& node, const char* key, const Value& value) {
  node[key] = yaml_scalar(fmt::format("{}", value), {});
}
void state_text(YamlNode& node, const std::string& key, const std::string& value) {
  node[key] = yaml_scalar(value, {}, true);
}

void state_rope_scaling(YamlNode& node, const RopeScaling& scaling) {
  state(node, "type", enum_name(scaling.type));
  state(node, "factor", scaling.factor);
  if (scaling.type == RopeScalingKind::linear) return;
  state(node, "original_max_position_embeddings", scaling.original_max_position_embeddings);
  if (scaling.type == RopeScalingKind::llama3) {
    state(node, "low_freq_factor", scaling.low_freq_factor);
    state(node, "high_freq_factor", scaling.high_freq_factor);
  } else {
    state(node, "beta_fast", scaling.beta_fast);
    state(node, "beta_slow", scaling.beta_slow);
  }
}

template <class Value>
void state_value(YamlNode& node, const std::string& key, const Value& value) {
  if constexpr (NamedEnum<Value>)
    state(node, key.c_str(), enum_name(value));
  else
    state(node, key.c_str(), value);
}
template <class Value>
void state_value(YamlNode& node, const std::string& key, const std::optional<Value>& value) {
  if (value) state_value(node, key, *value);
}

// Sections of a model whose keys are those of its fields.
template <class Section>
void state_section(YamlNode& node, const std::optional<Section>& section) {
  if (!section) return;
  for_each_field<Section>([&](const auto& each) { state_value(node, std::string(each.key), (*section).*each.member); });
}

// What a configuration has only for some models.
void state_special_parts(YamlNode& node, const ModelSpec& m) {
  state_value(node, "full_attention_layers", m.full_attention_layers);
  state_value(node, "attention_sinks", m.attention_sinks);
  state_value(node, "prediction_layers", m.prediction_layers);
  state_value(node, "shared_prediction", m.shared_prediction);
  if (m.latent_attention) state_section(node["latent_attention"], m.latent_attention);
  if (m.experts) state_section(node["experts"], m.experts);
}

void state_shape(YamlNode& node, const ModelSpec& m) {
  for (const auto& [key, size] : {std::pair{"num_layers", m.num_layers},
                                  {"hidden_size", m.hidden_size},
                                  {"ffn_hidden_size", m.ffn_hidden_size},
                                  {"num_attention_heads", m.num_attention_heads},
                                  {"num_key_value_heads", m.num_key_value_heads},
                                  {"head_dim", m.head_dim},
                                  {"vocab_size", m.vocab_size}})
    state(node, key, size);
  for (const auto& [key, is_set] : {std::pair{"tied_embeddings", m.tied_embeddings},
                                    {"qkv_bias", m.qkv_bias},
                                    {"linear_bias", m.linear_bias},
                                    {"qk_norm", m.qk_norm}})
    state(node, key, is_set);
  state(node, "norm", enum_name(m.norm));
  state(node, "mlp", enum_name(m.mlp));
  state(node, "position", enum_name(m.position));
  state(node, "norm_eps", m.norm_eps);
  if (m.position == PositionKind::rope) state(node, "rope_theta", m.rope_theta);
  if (m.rope_scaling) state_rope_scaling(node["rope_scaling"], *m.rope_scaling);
  if (m.sliding_window) state(node, "sliding_window", *m.sliding_window);
  state_special_parts(node, m);
}

bool has_same_shape(ModelSpec a, const ModelSpec& b) {
  a.name = b.name, a.full_name = b.full_name, a.max_position_embeddings = b.max_position_embeddings;
  return a == b;
}

// The name by which the model catalogue knows this very shape: the one that was given, where it does.
std::optional<std::string> catalogue_name(const ModelSpec& model, const std::string& given) {
  if (const auto known = find_model(given); known && has_same_shape(*known, model)) return given;
  for (const KnownModel& known : model_catalogue())
    if (has_same_shape(known.spec, model)) return known.spec.name;
  return std::nullopt;
}

// A name of the catalogue would bring that model's shape with it.
std::string foreign_name(const std::string& given) { return find_model(given) ? "planned " + given : given; }

std::string render_model(const ModelSpec& model, const std::string& key, const PlannedModel& planned,
                         int64_t sequence_length) {
  YamlNode root;
  YamlNode& node = root["models"][key];
  const std::string given = planned.name.empty() ? model.name : planned.name;
  const auto name = catalogue_name(model, given);
  state_text(node, "name", name ? *name : foreign_name(given));
  const auto known = name ? find_model(*name) : std::nullopt;
  if (known ? known->full_name != model.full_name : !find_model(model.full_name))
    state_text(node, "full_name", model.full_name);
  if (!known) state_shape(node, model);
  const int64_t longest = std::max(model.max_position_embeddings, sequence_length);
  if (!known || longest != known->max_position_embeddings) state(node, "max_position_embeddings", longest);
  for (const auto& [further, value] : planned.further) state_text(node, further, value);
  return print_yaml(root, false);
}

// Expert and pipeline keys, where the layout has them.
std::string render_further_sizes(const PlanLine& line) {
  std::string text;
  if (line.expert_ranks) text += fmt::format(", EP: {}, ETP: {}", line.expert, line.expert_tensor);
  if (line.ends_as_layers) text += ", embedding_and_loss_as_layers: true";
  if (line.pipeline_layout) text += fmt::format(", pipeline_layout: \"{}\"", *line.pipeline_layout);
  return text;
}

std::string render_layout(const PlanLine& line, Platform platform, const std::string& model) {
  return fmt::format(
      "parallelism:\n  {}:\n    {}:\n      {}: {{TP: {}, PP: {}, VP: {}, CP: {}, DP: {}, GA: {}, SP: {}, ZeRO: "
      "{}{}}}\n",
      k_strategy, model, enum_name(platform), line.tensor, line.pipeline, line.chunks, line.context, line.data,
      line.accumulation, line.tensor > 1, static_cast<int>(line.sharding), render_further_sizes(line));
}

// Who chooses the experts and how tokens reach them, where that is asked.
std::string render_training(const PlanRequest& request, const PlanLine& line) {
  std::string text = fmt::format("training:\n  data: {{micro_batch_size: {}, global_batch_size: {}, seq_length: {}}}\n",
                                 line.micro_batch, request.global_batch, request.sequence_length);
  if (request.routing) text += fmt::format("  routing: {}\n", enum_name(*request.routing));
  if (request.dispatcher) text += fmt::format("  dispatcher: {}\n", enum_name(*request.dispatcher));
  if (request.moment_bytes == 2) text += "  optimizer: {moments: bf16}\n";
  return text;
}

std::string render_modules(const PlanLine& line) {
  if (!line.recompute_modules) return "";
  std::string names;
  for (const RecomputedModule each : *line.recompute_modules)
    names += (names.empty() ? "" : ", ") + std::string(enum_name(each));
  return fmt::format(", recompute_modules: [{}]", names);
}

std::string render_heading(const PlanRequest& request, const PlanLine& line) {
  return fmt::format(
      "# {} on {} x {} by {}: predicted {} per step, {} tokens/s/GPU, {} of {} per GPU.\n"
      "# Paste each section into the section of the same name in a config.yaml.\n",
      request.shape.full_name, request.gpus, request.machine.id, request.family->full_name,
      format_duration(line.step_seconds), format_count(line.tokens_per_second_per_gpu), format_gb(line.memory_bytes),
      format_gb(request.machine.memory_bytes));
}

// Frameworks whose launchers take training.optimizer.moments.
bool states_moments(const std::optional<Framework>& framework) {
  return framework == Framework::tita || framework == Framework::tran || framework == Framework::native;
}

// What the plan rests on and a configuration has no key for.
void require_settings(const PlanRequest& request, const std::optional<Framework>& framework) {
  const std::pair<bool, const char*> without_key[] = {
      {request.graphs != Graphs::none, "CUDA graphs"},
      {request.overlaps_experts, "overlapped exchanges of tokens"},
      {request.narrow_attention, "attention in FP8"},
      {request.gradient_bytes > 0, "the width of summed gradients"},
      {request.moment_bytes == 2 && !states_moments(framework), "16-bit moments for this framework"}};
  for (const auto& [asked, what] : without_key)
    if (asked)
      throw Error(Problem{
          fmt::format("a configuration cannot select {}", what), "--yaml",
          request.tuned ? "omit --tuned" : "omit --graphs, --expert-overlap, --gradient-bytes and --moment-bytes"});
}

}  // namespace

std::string render_planned_config(const PlanRequest& request, const PlanLine& line, const PlannedModel& planned,
                                  const std::optional<Framework>& framework) {
  const Precision precision = require_precision(request.precision);
  if (request.recipe != Recipe::tensorwise)
    throw Error(Problem{fmt::format("a configuration cannot select the recipe {}", enum_name(request.recipe)), "--yaml",
                        "omit --recipe"});
  if (line.delays_weights)
    throw Error(Problem{"a configuration cannot select a zero-bubble schedule", "--yaml", "omit --zero-bubble"});
  if (request.trains_adapters) throw Error(Problem{"a configuration cannot select adapters", "--yaml", "omit --lora"});
  require_settings(request, framework);
  const Platform platform = platform_of(request.machine);
  const ModelSpec& model = request.shape;
  const std::string key = planned.key.empty() ? key_of(model.name) : planned.key;
  std::string text = render_heading(request, line);
  text += fmt::format("experiment:\n  methodology: {}\n", k_strategy);
  if (framework) text += fmt::format("  frameworks: [{}]\n", enum_name(*framework));
  text += fmt::format("hardware:\n  platforms:\n    {}: {{gpu_model: \"{}\", num_gpus: {}}}\n", enum_name(platform),
                      request.machine.id, request.gpus);
  text += render_model(model, key, planned, request.sequence_length);
  text += render_training(request, line) + render_layout(line, platform, key);
  return text + fmt::format("platform_optimizations:\n  {}: {{precision: {}, recompute: {}{}}}\n", enum_name(platform),
                            enum_name(precision), enum_name(line.recompute), render_modules(line));
}

}  // namespace tprimat::planner

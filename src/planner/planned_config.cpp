#include "planner/planned_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "spec/hardware_catalogue.h"
#include "spec/model_catalogue.h"
#include "text/format.h"

namespace tprimat {
namespace {

constexpr const char* k_strategy = "planned";

// Keys of a configuration are letters, digits, '_' and '-'.
std::string key_of(const std::string& name) {
  std::string key = name;
  std::replace_if(
      key.begin(), key.end(),
      [](unsigned char c) { return c != '-' && !(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z'); },
      '_');
  return key;
}

Platform platform_of(const Machine& machine) {
  if (const auto part = find_hardware(machine.id)) return part->platform;
  return machine.architecture.starts_with("cdna") ? Platform::amd : Platform::nvd;
}

Precision require_precision(PlanPrecision precision) {
  if (const auto known = parse_enum<Precision>(enum_name(precision))) return *known;
  throw Error(Problem{fmt::format("a configuration cannot ask for {}", enum_name(precision)), "--yaml",
                      "choose bf16, fp16 or fp8"});
}

std::string render_shape(const ModelSpec& m) {
  std::string text = fmt::format(
      "    num_layers: {}\n    hidden_size: {}\n    ffn_hidden_size: {}\n    num_attention_heads: {}\n"
      "    num_key_value_heads: {}\n    head_dim: {}\n    vocab_size: {}\n    tied_embeddings: {}\n    norm: {}\n"
      "    mlp: {}\n    position: {}\n",
      m.num_layers, m.hidden_size, m.ffn_hidden_size, m.num_attention_heads, m.num_key_value_heads, m.head_dim,
      m.vocab_size, m.tied_embeddings, enum_name(m.norm), enum_name(m.mlp), enum_name(m.position));
  for (const auto& [key, is_set] :
       {std::pair{"qkv_bias", m.qkv_bias}, {"linear_bias", m.linear_bias}, {"qk_norm", m.qk_norm}})
    if (is_set) text += fmt::format("    {}: true\n", key);
  if (m.position == PositionKind::rope) text += fmt::format("    rope_theta: {:.1f}\n", m.rope_theta);
  if (m.sliding_window) text += fmt::format("    sliding_window: {}\n", *m.sliding_window);
  return text;
}

std::string render_model(const ModelSpec& model, const std::string& key, int64_t sequence_length) {
  const auto known = find_model(model.name);
  std::string text = fmt::format("models:\n  {}:\n    name: \"{}\"\n", key, model.name);
  if (!known) text += render_shape(model);
  const int64_t longest = std::max(model.max_position_embeddings, sequence_length);
  if (!known || longest > model.max_position_embeddings)
    text += fmt::format("    max_position_embeddings: {}\n", longest);
  return text;
}

std::string render_layout(const PlanLine& line, Platform platform, const std::string& model) {
  return fmt::format(
      "parallelism:\n  {}:\n    {}:\n      {}: {{TP: {}, PP: {}, VP: {}, CP: {}, DP: {}, GA: {}, SP: {}, ZeRO: "
      "{}{}}}\n",
      k_strategy, model, enum_name(platform), line.tensor, line.pipeline, line.chunks, line.context, line.data,
      line.accumulation, line.tensor > 1, static_cast<int>(line.sharding),
      line.ends_as_layers ? ", embedding_and_loss_as_layers: true" : "");
}

std::string render_heading(const PlanRequest& request, const PlanLine& line) {
  return fmt::format(
      "# {} on {} x {} by {}: predicted {} per step, {} tokens/s/GPU, {} of {} per GPU.\n"
      "# Each section may be pasted into the one of the same name in a config.yaml.\n",
      request.shape.model.full_name, request.gpus, request.machine.id, request.family->full_name,
      format_duration(line.step_seconds), format_count(line.tokens_per_second_per_gpu), format_gb(line.memory_bytes),
      format_gb(request.machine.memory_bytes));
}

}  // namespace

std::string render_planned_config(const PlanRequest& request, const PlanLine& line, const std::string& configured) {
  const Precision precision = require_precision(request.precision);
  if (line.delays_weights)
    throw Error(Problem{"a configuration cannot ask for a zero-bubble schedule", "--yaml", "leave --zero-bubble out"});
  const Platform platform = platform_of(request.machine);
  const ModelSpec& model = request.shape.model;
  const std::string key = configured.empty() ? key_of(model.name) : configured;
  std::string text = render_heading(request, line);
  text += fmt::format("experiment:\n  methodology: {}\n", k_strategy);
  text += fmt::format("hardware:\n  platforms:\n    {}: {{gpu_model: \"{}\", num_gpus: {}}}\n", enum_name(platform),
                      request.machine.id, request.gpus);
  if (configured.empty()) text += render_model(model, key, request.sequence_length);
  text += fmt::format("training:\n  data: {{micro_batch_size: {}, global_batch_size: {}, seq_length: {}}}\n",
                      line.micro_batch, request.global_batch, request.sequence_length);
  text += render_layout(line, platform, key);
  return text + fmt::format("platform_optimizations:\n  {}: {{precision: {}, recompute: {}}}\n", enum_name(platform),
                            enum_name(precision), enum_name(line.recompute));
}

}  // namespace tprimat

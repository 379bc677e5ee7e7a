#include "extract/logged_model.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "base/error.h"
#include "extract/scan_text.h"
#include "result/consistency.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "spec/model_catalogue.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

// A configuration dump by any of the names that frameworks give a setting.
class DumpedSettings {
 public:
  explicit DumpedSettings(const std::map<std::string, std::string>& settings) : settings_(settings) {}

  std::string_view word(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (const auto found = settings_.find(key); found != settings_.end() && found->second != "None")
        return found->second;
    return {};
  }
  std::optional<int64_t> whole(std::initializer_list<const char*> keys) const {
    const auto value = parse_whole(word(keys));
    return value && *value > 0 ? value : std::nullopt;
  }
  bool is_true(std::initializer_list<const char*> keys) const {
    const std::string_view value = word(keys);
    return value == "True" || value == "true";
  }
  bool has(const char* key) const { return settings_.count(key) > 0; }

 private:
  const std::map<std::string, std::string>& settings_;
};

// "expert_model_parallel_size 8", if the number of experts is not stated.
std::string find_routing(const DumpedSettings& dump) {
  if (dump.has("num_experts") || dump.has("num_moe_experts")) return "";  // "None" is an answer
  if (!dump.word({"load_balancing_loss"}).empty()) return "load_balancing_loss";
  for (const char* key :
       {"expert_model_parallel_size", "model.expert_model_parallel_size", "parallelism.expert_parallel_degree"})
    if (const auto ranks = dump.whole({key}); ranks && *ranks > 1)
      return std::string(key) + " " + std::to_string(*ranks);
  return "";
}

// Shapes that ModelSpec cannot describe: their FLOPs would be wrong.
bool is_beyond_us(const DumpedSettings& dump) {
  return dump.is_true({"multi_latent_attention"}) ||
         dump.whole({"num_experts", "num_moe_experts", "num_local_experts", "n_routed_experts"}) ||
         !find_routing(dump).empty() || dump.whole({"q_lora_rank", "kv_lora_rank"}) ||
         dump.has("hybrid_override_pattern");
}

int64_t key_value_heads(const DumpedSettings& dump, int64_t heads) {
  const bool megatron = dump.has("group_query_attention");
  if (megatron && !dump.is_true({"group_query_attention"})) return heads;
  return dump.whole({"num_query_groups", "num_key_value_heads"}).value_or(heads);
}

// Megatron's defaults are those of GPT-3; a dump without the MLP does not suffice for FLOPs.
void read_kinds(const DumpedSettings& dump, ModelSpec& model) {
  const std::string_view activation = dump.word({"hidden_act", "activation_function"});
  model.mlp = dump.is_true({"swiglu"}) || activation == "silu" ? MlpKind::swiglu : MlpKind::gelu;
  const std::string_view norm = dump.word({"normalization"});
  model.norm = norm == "RMSNorm" || dump.has("rms_norm_eps") ? NormKind::rms : NormKind::layer;
  const std::string_view position = dump.word({"position_embedding_type"});
  model.position = position == "rope" || dump.has("rope_theta") ? PositionKind::rope : PositionKind::learned;
  const bool untied = dump.is_true({"untie_embeddings_and_output_weights"}) ||
                      dump.word({"tie_word_embeddings"}) == "False" || dump.word({"tie_word_embeddings"}) == "false";
  model.tied_embeddings = !untied;
  model.qkv_bias = dump.is_true({"add_qkv_bias"});
  model.linear_bias = dump.has("add_bias_linear") ? dump.is_true({"add_bias_linear"}) : model.mlp == MlpKind::gelu;
  model.qk_norm = dump.is_true({"qk_layernorm"});
}

bool states_mlp(const DumpedSettings& dump) {
  return dump.has("swiglu") || dump.has("hidden_act") || dump.has("activation_function") || dump.has("n_embd");
}

std::optional<ModelSpec> read_dump(const DumpedSettings& dump) {
  const auto layers = dump.whole({"num_layers", "num_hidden_layers", "n_layer"});
  const auto hidden = dump.whole({"hidden_size", "n_embd"});
  const auto heads = dump.whole({"num_attention_heads", "n_head"});
  const auto vocabulary = dump.whole({"vocab_size", "padded_vocab_size"});
  if (!layers || !hidden || !heads || !vocabulary || is_beyond_us(dump)) return std::nullopt;
  ModelSpec model;
  read_kinds(dump, model);
  const auto inner = dump.whole({"ffn_hidden_size", "intermediate_size", "n_inner"});
  // A GPT without the figure has 4 x hidden; any other size, or a gated MLP, must be stated.
  if (!inner && model.mlp != MlpKind::gelu) return std::nullopt;
  if (!states_mlp(dump) && (!inner || *inner != 4 * *hidden)) return std::nullopt;
  model.num_layers = *layers;
  model.hidden_size = *hidden;
  model.ffn_hidden_size = inner.value_or(4 * *hidden);
  model.num_attention_heads = *heads;
  model.num_key_value_heads = key_value_heads(dump, *heads);
  model.head_dim = dump.whole({"kv_channels", "head_dim"}).value_or(*hidden / *heads);
  model.vocab_size = *vocabulary;
  model.max_position_embeddings = dump.whole({"max_position_embeddings", "n_positions"}).value_or(1);
  return model;
}

}  // namespace

std::optional<ModelSpec> find_named_model(const LoggedFacts& facts) {
  if (!facts.model) return std::nullopt;
  // torchtitan's llama3 has the shapes of Llama 3.1 (torchtitan/models/llama3/__init__.py), and it prints the count of
  // the whole model.
  constexpr double k_same = 0.02;
  for (const auto& [own, known] :
       {std::pair{"llama3 8B", "Llama 3.1 8B"}, {"llama3 70B", "Llama 3.1 70B"}, {"llama3 405B", "Llama 3.1 405B"}}) {
    if (*facts.model != own) continue;
    const auto model = find_model(known);
    const auto parameters = model ? static_cast<double>(count_parameters(*model).total()) : 0;
    const bool is_other =
        facts.parameters && std::abs(static_cast<double>(*facts.parameters) - parameters) > k_same * parameters;
    return is_other ? std::nullopt : model;
  }
  return find_model(*facts.model);
}

LoggedShape read_logged_shape(const std::map<std::string, std::string>& settings) {
  const DumpedSettings dump(settings);
  return {
      .num_layers = dump.whole({"num_layers", "num_hidden_layers", "n_layer", "model.num_layers", "num_layers L"}),
      .hidden_size = dump.whole({"hidden_size", "n_embd", "model.hidden_size", "channels C"}),
      .ffn_hidden_size = dump.whole({"ffn_hidden_size", "intermediate_size", "n_inner", "model.ffn_hidden_size"}),
      .num_attention_heads = dump.whole({"num_attention_heads", "n_head", "model.num_attention_heads", "num_heads NH"}),
      .num_experts = dump.whole(
          {"num_experts", "num_moe_experts", "num_local_experts", "n_routed_experts", "model.num_moe_experts"}),
      .vocab_size = dump.whole({"vocab_size", "model.vocab_size", "vocab_size V", "padded_vocab_size"}),
      .routing = find_routing(dump)};
}

std::optional<ModelSpec> find_model_shape(const std::map<std::string, std::string>& settings,
                                          const LoggedFacts& facts) {
  if (auto model = read_dump(DumpedSettings(settings)); model && model->hidden_size < (int64_t{1} << 31)) {
    model->name = facts.model.value_or("");
    model->max_position_embeddings = std::max(model->max_position_embeddings, facts.sequence_length.value_or(1));
    if (check_model(*model, "").empty()) return model;
  }
  return find_named_model(facts);
}

namespace {

// A vocabulary is padded so that tensor-parallel ranks share it evenly.
bool may_be_vocabulary_of(int64_t stated, int64_t known) {
  constexpr int64_t k_max_padding = 8192;
  return stated >= known - known / 100 && stated <= known + k_max_padding;
}

}  // namespace

std::vector<std::string> list_contradictions(const RunResult& result, const ModelSpec& model,
                                             const StatedFacts& stated) {
  const LoggedShape shape = read_logged_shape(stated.settings);
  std::vector<std::string> sizes;
  const auto compare = [&](const char* name, const std::optional<int64_t>& said, int64_t known) {
    if (said && *said != known) sizes.push_back(fmt::format("{} {}, not {}", name, *said, known));
  };
  compare("layers", shape.num_layers, model.num_layers);
  compare("hidden size", shape.hidden_size, model.hidden_size);
  compare("attention heads", shape.num_attention_heads, model.num_attention_heads);
  compare("MLP size", shape.ffn_hidden_size, model.ffn_hidden_size);
  const int64_t experts = model.experts ? model.experts->count : 0;
  if (shape.num_experts && *shape.num_experts != std::max<int64_t>(1, experts))
    sizes.push_back(fmt::format("experts {}, not {}", *shape.num_experts, experts));
  if (!shape.num_experts && !shape.routing.empty() && experts == 0)
    sizes.push_back(fmt::format("experts ({}), not a dense model", shape.routing));
  if (shape.vocab_size && !may_be_vocabulary_of(*shape.vocab_size, model.vocab_size))
    compare("vocabulary", shape.vocab_size, model.vocab_size);
  const auto parameters = static_cast<double>(count_parameters(model).total());
  if (stated.facts.parameters && !may_be_count_of(result, parameters))
    sizes.push_back(fmt::format("{} parameters, not {}", format_count(static_cast<double>(*stated.facts.parameters)),
                                format_count(parameters)));
  return sizes;
}

namespace {

// With tensor or pipeline parallelism each rank counts its own part; the share of the trained ones holds for all.
std::optional<int64_t> trainable_of_parts(const LoggedFacts& facts, double all) {
  if (facts.frozen_parameters.value_or(0) <= 0) return std::nullopt;
  const auto trained = static_cast<double>(*facts.trainable_parameters);
  const double counted = trained + static_cast<double>(*facts.frozen_parameters);
  return std::llround(trained / counted * std::max(all, counted));
}

// A count of trainable parameters without one of frozen parameters may be the total, or a rank's shard of it.
std::optional<int64_t> trainable_of(const StatedFacts& stated, const std::optional<ModelSpec>& shape, bool is_adapted) {
  constexpr double k_all = 0.999, k_same = 1.01;
  const LoggedFacts& facts = stated.facts;
  const auto& trainable = facts.trainable_parameters;
  if (!trainable || *trainable <= 0) return std::nullopt;
  const double all = facts.parameters ? static_cast<double>(*facts.parameters)
                     : shape          ? static_cast<double>(count_parameters(*shape).total())
                                      : 0;
  if (facts.tensor_parallel.value_or(1) * facts.pipeline_parallel.value_or(1) > 1)
    return trainable_of_parts(facts, shape ? static_cast<double>(count_parameters(*shape).total()) : all);
  if (facts.frozen_parameters) return *facts.frozen_parameters > 0 ? trainable : std::nullopt;
  const auto count = static_cast<double>(*trainable), devices = static_cast<double>(facts.gpu_count.value_or(1));
  if (is_adapted && (all <= 0 || count < all * k_all)) return trainable;
  const bool is_shard = devices > 1 && count * devices <= all * k_same && all <= count * devices * k_same;
  return count < all * k_all && !is_shard ? trainable : std::nullopt;
}

}  // namespace

void settle_model(RunResult& result, const StatedFacts& stated, const std::string& known,
                  const std::optional<ModelSpec>& known_shape) {
  LoggedFacts facts = stated.facts;
  const bool is_given = !known.empty() && known != facts.model;
  if (!known.empty()) facts.model = known;
  ModelInfo& model = result.model_info;
  model.name = facts.model.value_or("");
  model.num_parameters = facts.parameters;
  model.shape = find_model_shape(stated.settings, facts);
  if (!model.shape) model.shape = known_shape;
  if (known_shape && !known_shape->full_name.empty()) model.full_name = known_shape->full_name;
  const auto named = known_shape ? known_shape : find_named_model(facts);
  if (const auto sizes = named ? list_contradictions(result, *named, stated) : std::vector<std::string>();
      !sizes.empty()) {
    if (is_given)
      throw Error(
          Problem{fmt::format("the log contradicts {}: it states {}", named->full_name, join(sizes, "; ")), "--model",
                  "name the model that ran, or omit --model: the shape is then read from the log if it states one"});
    add_warning(
        result,
        fmt::format("the log names {} but states {}: it is another model, so the shape is not taken from the name",
                    named->full_name, join(sizes, "; ")));
    if (model.shape == named) model.shape.reset();
  }
  std::string adapters = find_adapters(stated.settings).value_or("");
  if (adapters.empty() && facts.frozen_parameters.value_or(0) > 0)
    adapters = fmt::format("{} frozen parameters", format_count(static_cast<double>(*facts.frozen_parameters)));
  model.trainable_parameters = trainable_of(stated, model.shape, !adapters.empty());
  if (!adapters.empty() && !model.trainable_parameters)
    add_warning(
        result,
        fmt::format("only part of the model is trained ({}); the log does not state the number of trainable parameters",
                    adapters));
}

}  // namespace tprimat::logs

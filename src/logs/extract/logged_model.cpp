#include "extract/logged_model.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "extract/common/expert_settings.h"
#include "extract/common/setting_lines.h"
#include "extract/logged_experts.h"
#include "extract/scan_text.h"
#include "result/consistency.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "spec/model_catalogue.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

int64_t key_value_heads(const DumpedSettings& dump, int64_t heads) {
  const bool megatron = dump.has("group_query_attention");
  if (megatron && !dump.is_true({"group_query_attention"})) return heads;
  return dump.whole({"num_query_groups", "num_key_value_heads", "model_args.n_kv_heads"}).value_or(heads);
}

bool is_torchtitan(const DumpedSettings& dump) { return dump.has("model_args.dim"); }

bool is_untied(const DumpedSettings& dump) {
  const std::string_view tied = dump.word({"tie_word_embeddings", "share_embeddings_and_output_weights"});
  if (is_torchtitan(dump)) return !dump.is_true({"model_args.enable_weight_tying"});
  return dump.is_true({"untie_embeddings_and_output_weights"}) || tied == "False" || tied == "false";
}

// Megatron's defaults are those of GPT-3; a dump without the MLP does not suffice for FLOPs.
void read_kinds(const DumpedSettings& dump, ModelSpec& model) {
  const bool titan = is_torchtitan(dump);  // whose sparse models are all alike in these
  const std::string_view activation = dump.word({"hidden_act", "activation_function"});
  const bool gated = titan || dump.is_true({"swiglu", "gated_linear_unit"}) || activation == "silu";
  model.mlp = gated ? MlpKind::swiglu : MlpKind::gelu;
  const std::string_view norm = dump.word({"normalization"});
  model.norm = titan || norm == "RMSNorm" || dump.has("rms_norm_eps") ? NormKind::rms : NormKind::layer;
  const std::string_view position = dump.word({"position_embedding_type"});
  const bool rope = titan || position == "rope" || position == "yarn" || dump.has("rope_theta");
  model.position = rope ? PositionKind::rope : PositionKind::learned;
  if (const auto base = dump.number({"rotary_base", "rope_theta", "model_args.rope_theta"}); base && rope && *base > 0)
    model.rope_theta = *base;
  if (const auto epsilon = dump.number(
          {"norm_epsilon", "layernorm_epsilon", "rms_norm_eps", "layer_norm_epsilon", "model_args.norm_eps"});
      epsilon && *epsilon > 0)
    model.norm_eps = *epsilon;
  model.tied_embeddings = !is_untied(dump);
  const std::string_view family = dump.family();
  model.qkv_bias = dump.is_true({"add_qkv_bias", "attention_bias"}) || family.starts_with("qwen2");
  model.linear_bias = dump.has("add_bias_linear") ? dump.is_true({"add_bias_linear"}) : model.mlp == MlpKind::gelu;
  model.qk_norm = dump.is_true({"qk_layernorm", "model_args.qk_norm"}) || family.starts_with("qwen3");
}

bool states_mlp(const DumpedSettings& dump) {
  return is_torchtitan(dump) ||
         dump.has_any({"swiglu", "gated_linear_unit", "hidden_act", "activation_function", "n_embd"});
}

// Hugging Face's configurations of other families have the same names for other layers.
bool has_known_layers(const DumpedSettings& dump) {
  const std::string_view family = dump.family();
  constexpr std::string_view k_families[] = {"llama",     "mistral", "mixtral",     "qwen2",       "qwen3", "qwen2_moe",
                                             "qwen3_moe", "gpt_oss", "deepseek_v2", "deepseek_v3", "gpt2"};
  return family.empty() || std::ranges::find(k_families, family) != std::end(k_families);
}

struct DumpedShape {
  std::optional<ModelSpec> model;
  std::string why_not;
};

// The sizes that every model has. False: one of them is not stated.
bool read_sizes(const DumpedSettings& dump, ModelSpec& model, std::string& why_not) {
  std::string missing;
  const auto take = [&](int64_t ModelSpec::*size, DumpedSettings::Names names) {
    model.*size = dump.whole(names).value_or(0);
    if (model.*size == 0) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", *names.begin());
  };
  take(&ModelSpec::num_layers, {"num_layers", "num_hidden_layers", "n_layer", "model_args.n_layers"});
  take(&ModelSpec::hidden_size, {"hidden_size", "n_embd", "model_args.dim"});
  take(&ModelSpec::num_attention_heads, {"num_attention_heads", "n_head", "model_args.n_heads"});
  take(&ModelSpec::vocab_size, {"vocab_size", k_tokenizer_vocabulary, "padded_vocab_size", "model_args.vocab_size"});
  // GPT-NeoX's dump names positions, tied embeddings and MLPs otherwise.
  if (dump.has("pipe_parallel_size")) missing = "its layers by Megatron-LM's names";
  if (!missing.empty()) why_not = "it does not state " + missing;
  return missing.empty();
}

// A GPT without the figure has 4 x hidden; any other size, or a gated MLP, must be stated, but for a model whose layers
// all have experts.
bool read_dense_mlp(const DumpedSettings& dump, bool is_sparse, ModelSpec& model) {
  const auto inner =
      dump.whole({"ffn_hidden_size", "intermediate_size", "n_inner", "model_args.inter_dim", "model_args.hidden_dim"});
  const auto experts = dump.whole({"moe_ffn_hidden_size", "moe_intermediate_size", "model_args.moe_inter_dim"});
  model.ffn_hidden_size = inner.value_or(is_sparse && experts ? *experts : 4 * model.hidden_size);
  if (!inner && !(is_sparse && experts) && model.mlp != MlpKind::gelu) return false;
  return states_mlp(dump) || model.ffn_hidden_size == 4 * model.hidden_size;
}

void read_attention(const DumpedSettings& dump, ModelSpec& model) {
  model.num_key_value_heads = key_value_heads(dump, model.num_attention_heads);
  model.head_dim = dump.whole({"kv_channels", "head_dim", "model_args.head_dim"})
                       .value_or(model.hidden_size / model.num_attention_heads);
  read_latent_attention(dump, model);
  read_window(dump, model);
}

DumpedShape read_dump(const std::map<std::string, std::string>& settings) {
  const DumpedSettings dump(settings);
  const auto experts = stated_experts(settings);
  ModelSpec model;
  std::string why_not = find_uncountable(dump);
  if (!why_not.empty() || !read_sizes(dump, model, why_not)) return {{}, why_not};
  constexpr int64_t k_max_size = int64_t{1} << 31;
  if (model.hidden_size >= k_max_size || model.num_layers >= k_max_size) return {{}, "its sizes are impossible"};
  if (!has_known_layers(dump)) return {{}, fmt::format("its model_type {} has unknown layers", dump.family())};
  if (!experts && !find_routing(settings).empty()) return {{}, "it does not state the number of experts"};
  if (!experts && is_torchtitan(dump)) return {};  // its dense models are known by their names
  if (!read_mixers(dump, model, why_not)) return {{}, why_not};
  read_kinds(dump, model);
  if (!read_dense_mlp(dump, experts.has_value(), model)) return {{}, "it does not state its MLPs"};
  read_attention(dump, model);
  model.max_position_embeddings = dump.whole({"max_position_embeddings", "n_positions"}).value_or(1);
  read_prediction_layers(dump, model);
  if (!experts) return {model, ""};
  model.experts.emplace();
  if (!read_experts(dump, model, why_not)) return {{}, why_not};
  model.experts->count = *experts;
  return {model, ""};
}

}  // namespace

std::optional<ModelSpec> find_named_model(const LoggedFacts& facts) {
  if (!facts.model) return std::nullopt;
  // torchtitan's names for shapes that are known by others (torchtitan/models/*/__init__.py). It prints the count of
  // the whole model, and trains no layers that predict further tokens.
  constexpr double k_same = 0.02;
  constexpr std::pair<std::string_view, std::string_view> k_titan_names[] = {{"llama3 8B", "Llama 3.1 8B"},
                                                                             {"llama3 70B", "Llama 3.1 70B"},
                                                                             {"llama3 405B", "Llama 3.1 405B"},
                                                                             {"deepseek_v3 16B", "DeepSeek-V2-Lite"},
                                                                             {"deepseek_v3 671B", "DeepSeek-V3 671B"},
                                                                             {"gpt_oss 20b", "gpt-oss 20B"},
                                                                             {"gpt_oss 120b", "gpt-oss 120B"}};
  for (const auto& [own, known] : k_titan_names) {
    if (*facts.model != own) continue;
    auto model = find_model(known);
    if (model) model->prediction_layers.reset(), model->shared_prediction.reset();
    const auto parameters = model ? static_cast<double>(count_parameters(*model).total()) : 0;
    const bool is_other =
        facts.parameters && std::abs(static_cast<double>(*facts.parameters) - parameters) > k_same * parameters;
    return is_other ? std::nullopt : model;
  }
  return find_model(*facts.model);
}

LoggedShape read_logged_shape(const std::map<std::string, std::string>& settings) {
  const DumpedSettings dump(settings);
  const int64_t shared = dump.whole({"n_shared_experts", "model_args.moe_args.num_shared_experts"}).value_or(0);
  const auto inner = dump.whole({"moe_ffn_hidden_size", "moe_intermediate_size", "model_args.moe_inter_dim"});
  auto shared_inner = dump.whole({"moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"});
  constexpr int64_t k_max_size = int64_t{1} << 31;
  if (!shared_inner && inner && shared > 0 && shared < k_max_size && *inner < k_max_size)
    shared_inner = shared * *inner;
  return {
      .num_layers = dump.whole({"num_layers", "num_hidden_layers", "n_layer", "num_layers L", "model_args.n_layers"}),
      .hidden_size = dump.whole({"hidden_size", "n_embd", "channels C", "model_args.dim"}),
      .ffn_hidden_size = dump.whole({"ffn_hidden_size", "intermediate_size", "n_inner", "model_args.inter_dim"}),
      .num_attention_heads = dump.whole({"num_attention_heads", "n_head", "num_heads NH", "model_args.n_heads"}),
      .num_experts = dump.whole({"num_experts", "num_moe_experts", "num_local_experts", "n_routed_experts",
                                 "model_args.moe_args.num_experts"}),
      .experts_per_token = dump.whole({"moe_router_topk", "num_experts_per_tok", "model_args.moe_args.top_k"}),
      .expert_ffn_hidden_size = inner,
      .shared_ffn_hidden_size = shared_inner,
      .vocab_size = dump.whole(
          {"vocab_size", "vocab_size V", k_tokenizer_vocabulary, "padded_vocab_size", "model_args.vocab_size"}),
      .routing = find_routing(settings)};
}

std::optional<ModelSpec> find_model_shape(const std::map<std::string, std::string>& settings,
                                          const LoggedFacts& facts) {
  if (auto model = read_dump(settings).model) {
    model->name = facts.model.value_or("");
    model->max_position_embeddings = std::max(model->max_position_embeddings, facts.sequence_length.value_or(1));
    if (check_model(*model, "").empty()) return model;
  }
  if (facts.shape && check_model(*facts.shape, "").empty()) return facts.shape;
  return find_named_model(facts);
}

namespace {

// A vocabulary is padded so that tensor-parallel ranks share it evenly.
bool may_be_vocabulary_of(int64_t stated, int64_t known) {
  constexpr int64_t k_max_padding = 8192;
  return stated >= known - known / 100 && stated <= known + k_max_padding;
}

void compare_mlps(const LoggedShape& shape, const ModelSpec& model, std::vector<std::string>& sizes) {
  const auto compare = [&](const char* name, const std::optional<int64_t>& said, int64_t known) {
    if (said && *said != known) sizes.push_back(fmt::format("{} {}, not {}", name, *said, known));
  };
  const bool both_sparse = shape.num_experts.value_or(1) > 1 && model.is_sparse();
  // Without dense layers their width has no effect, and some configurations give the experts' by that name.
  if (!both_sparse || model.dense_layers() > 0) compare("MLP size", shape.ffn_hidden_size, model.ffn_hidden_size);
  if (shape.num_experts && *shape.num_experts != (model.is_sparse() ? model.experts->count : 1))
    sizes.push_back(
        fmt::format("experts {}, not {}", *shape.num_experts, model.is_sparse() ? model.experts->count : 0));
  if (!shape.num_experts && !shape.routing.empty() && !model.is_sparse())
    sizes.push_back(fmt::format("experts ({}), not a dense model", shape.routing));
  if (!both_sparse) return;
  compare("experts per token", shape.experts_per_token, model.experts->per_token);
  compare("MLP size of an expert", shape.expert_ffn_hidden_size, model.experts->ffn_hidden_size);
  compare("MLP size of the shared experts", shape.shared_ffn_hidden_size, model.experts->shared_ffn_hidden_size);
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
  compare_mlps(shape, model, sizes);
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

// A mixture of experts is worth a reason: its FLOPs cannot be told from the count of its parameters.
void warn_about_missing_shape(RunResult& result, const StatedFacts& stated) {
  if (result.model_info.shape || !shows_experts(stated.settings)) return;
  const auto experts = stated_experts(stated.settings);
  const std::string sign = experts ? fmt::format("{} experts", *experts) : find_routing(stated.settings);
  const DumpedShape dump = read_dump(stated.settings);
  const auto problems = dump.model ? check_model(*dump.model, "") : std::vector<Problem>();
  const std::string why = !problems.empty() ? "its sizes fit no model: " + problems.front().what : dump.why_not;
  add_warning(result, fmt::format("no FLOPs and no MFU: the log is of a mixture of experts ({}), but {}; --model names "
                                  "a model of the catalogue or of the configuration",
                                  sign, why));
}

}  // namespace

void settle_model(RunResult& result, const StatedFacts& stated, const std::string& known,
                  const std::optional<ModelSpec>& known_shape) {
  LoggedFacts facts = stated.facts;
  const bool is_given = !known.empty() && known != facts.model;
  if (!known.empty()) facts.model = known;
  if (is_given && (known_shape || find_named_model(facts))) facts.shape.reset();
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
  warn_about_missing_shape(result, stated);
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

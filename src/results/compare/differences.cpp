#include "compare/differences.h"

#include <array>
#include <charconv>
#include <span>

#include "compare/expert_facts.h"
#include "result/active_count.h"
#include "spec/model_catalogue.h"
#include "spec/tsv_rows.h"

namespace tprimat::results {
namespace {

enum class Matter { work, detail, none };

struct ShapeName {
  std::string_view key;
  const char* word;
  Matter matter;
};

// Unlisted keys count as work, under their own names: a new field of a shape matters.
constexpr std::array k_shape_names = {
    ShapeName{"name", "", Matter::none},
    ShapeName{"full_name", "", Matter::none},
    ShapeName{"num_layers", "layers", Matter::work},
    ShapeName{"hidden_size", "hidden size", Matter::work},
    ShapeName{"ffn_hidden_size", "FFN size", Matter::work},
    ShapeName{"num_attention_heads", "heads", Matter::work},
    ShapeName{"num_key_value_heads", "KV heads", Matter::work},
    ShapeName{"head_dim", "head width", Matter::work},
    ShapeName{"vocab_size", "vocabulary", Matter::work},
    ShapeName{"sliding_window", "sliding window", Matter::work},
    ShapeName{"full_attention_layers", "layers without the sliding window", Matter::work},
    ShapeName{"attention_sinks", "attention sinks", Matter::detail},
    ShapeName{"latent_attention", "latent attention (MLA)", Matter::work},
    ShapeName{"mamba", "Mamba mixers", Matter::work},
    ShapeName{"prediction_layers", "", Matter::none},  // check_prediction_layers
    ShapeName{"shared_prediction", "MTP layers share weights", Matter::detail},
    ShapeName{"mlp", "MLP", Matter::work},
    ShapeName{"tied_embeddings", "tied embeddings", Matter::work},
    ShapeName{"norm", "norm", Matter::detail},
    ShapeName{"position", "positions", Matter::detail},
    ShapeName{"qk_norm", "norm of queries and keys", Matter::detail},
    ShapeName{"qkv_bias", "bias of queries, keys, values", Matter::detail},
    ShapeName{"linear_bias", "bias of linear layers", Matter::detail},
    ShapeName{"max_position_embeddings", "", Matter::none},
    ShapeName{"rope_theta", "rotary base", Matter::detail},
    ShapeName{"rope_scaling", "rotary scaling", Matter::detail},
    ShapeName{"norm_eps", "", Matter::none}};

// The last four have rules of their own.
constexpr std::array k_expert_names = {ShapeName{"count", "experts", Matter::work},
                                       ShapeName{"per_token", "experts per token", Matter::work},
                                       ShapeName{"ffn_hidden_size", "FFN size of an expert", Matter::work},
                                       ShapeName{"shared_ffn_hidden_size", "FFN size of shared experts", Matter::work},
                                       ShapeName{"shared_gate", "gate of shared experts", Matter::detail},
                                       ShapeName{"first_dense_layers", "first dense layers", Matter::work},
                                       ShapeName{"layer_interval", "interval of layers with experts", Matter::work},
                                       ShapeName{"latent_size", "latent width of experts", Matter::work},
                                       ShapeName{"router_score", "router's scores", Matter::detail},
                                       ShapeName{"normalize_weights", "normalised weights of experts", Matter::detail},
                                       ShapeName{"weight_scale", "scale of experts' weights", Matter::detail},
                                       ShapeName{"groups", "groups of experts", Matter::detail},
                                       ShapeName{"groups_per_token", "groups per token", Matter::detail},
                                       ShapeName{"balancing", "", Matter::none},
                                       ShapeName{"aux_loss_coefficient", "", Matter::none},
                                       ShapeName{"z_loss_coefficient", "", Matter::none},
                                       ShapeName{"capacity_factor", "", Matter::none}};

ShapeName name_of(std::string_view key, std::span<const ShapeName> names = k_shape_names) {
  const auto found = std::ranges::find_if(names, [&](const ShapeName& each) { return each.key == key; });
  return found == names.end() ? ShapeName{key, key.data(), Matter::work} : *found;
}

template <class T>
void compare_field(Evidences& evidence, const char* word, const T& a, const T& b) {
  add(evidence, word, a, b);
}
// An absent optional figure of a shape is known: the model has no experts, or no window.
template <class T>
void compare_field(Evidences& evidence, const char* word, const std::optional<T>& a, const std::optional<T>& b) {
  if (a != b) evidence.push_back({word, a ? words(*a) : "none", b ? words(*b) : "none"});
}
template <Described T>
void compare_field(Evidences& evidence, const char* word, const std::optional<T>& a, const std::optional<T>& b) {
  if (a.has_value() != b.has_value()) return evidence.push_back({word, a ? "yes" : "none", b ? "yes" : "none"});
  if (!a) return;
  for_each_field<T>([&](const auto& field) {
    const std::string part = fmt::format("{}: {}", word, field.key);
    compare_field(evidence, part.c_str(), (*a).*field.member, (*b).*field.member);
  });
}
void compare_field(Evidences& evidence, const char* word, const std::optional<RopeScaling>& a,
                   const std::optional<RopeScaling>& b) {
  const auto describe = [](const std::optional<RopeScaling>& scaling) {
    return scaling ? fmt::format("{} by {:g} of {}", enum_name(scaling->type), scaling->factor,
                                 scaling->original_max_position_embeddings)
                   : "none";
  };
  if (a != b) add(evidence, word, describe(a), describe(b));
}

// Experts on one side only: check_sparse_against_dense.
void compare_experts(Evidences& evidence, const std::optional<Experts>& a, const std::optional<Experts>& b,
                     Matter wanted) {
  if (!a || !b) return;
  for_each_field<Experts>([&](const auto& field) {
    const ShapeName name = name_of(field.key, k_expert_names);
    if (name.matter == wanted) compare_field(evidence, name.word, (*a).*field.member, (*b).*field.member);
  });
}

// No layer has the dense MLP's width.
bool has_idle_width(const ModelSpec& shape) { return shape.experts && shape.dense_layers() == 0; }

// A window as long as the sequence hides no key.
ModelSpec without_idle_parts(ModelSpec shape, const std::optional<int64_t>& sequence_length) {
  if (shape.sliding_window && sequence_length && *shape.sliding_window >= *sequence_length)
    shape.sliding_window.reset();
  if (!shape.sliding_window) shape.full_attention_layers.reset();
  if (!shape.attention_sinks.value_or(false)) shape.attention_sinks.reset();
  if (!shape.shared_prediction.value_or(false)) shape.shared_prediction.reset();
  return shape;
}

// The larger number of devices that share a layer; a side may be padded for more than it uses.
int64_t padded_for(const RunResult& reference, const RunResult& subject) {
  constexpr int64_t k_one_node = 8, k_max = 64;
  const auto sharing = [](const RunResult& run) {
    return run.parallelism_config.tensor_model_parallel_size.value_or(1);
  };
  return std::clamp(std::max(sharing(reference), sharing(subject)), k_one_node, k_max);
}

// Trainers round the vocabulary up, so that it divides evenly: Megatron-LM to a multiple of 128 x TP.
bool is_padding(int64_t a, int64_t b, int64_t tensor_parallel) {
  constexpr double k_rounding = 0.01;
  const auto [less, more] = std::minmax(a, b);
  if (static_cast<double>(more - less) <= k_rounding * static_cast<double>(more)) return true;
  const int64_t multiple = 128 * tensor_parallel, above = less % multiple == 0 ? 0 : multiple - less % multiple;
  return more - less <= above;
}

Evidences compare_shapes(const RunResult& reference, const RunResult& subject, Matter wanted) {
  ModelSpec a = without_idle_parts(*reference.model_info.shape, reference.training_config.sequence_length);
  ModelSpec b = without_idle_parts(*subject.model_info.shape, subject.training_config.sequence_length);
  if (has_idle_width(a) || has_idle_width(b)) a.ffn_hidden_size = b.ffn_hidden_size = 0;
  Evidences evidence;
  for_each_field<ModelSpec>([&](const auto& field) {
    ShapeName name = name_of(field.key);
    if (field.key == "vocab_size" && is_padding(a.vocab_size, b.vocab_size, padded_for(reference, subject)))
      name.matter = Matter::detail;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(a.*field.member)>, std::optional<Experts>>)
      compare_experts(evidence, a.experts, b.experts, wanted);
    else if (name.matter == wanted)
      compare_field(evidence, name.word, a.*field.member, b.*field.member);
  });
  return evidence;
}

std::string full_name_of(const RunResult& run) {
  const auto& shape = run.model_info.shape;
  return shape && !shape->full_name.empty() ? shape->full_name : run.model_info.full_name.value_or("");
}

enum class Answer { unknown, equal, other };

// Logs round the count, and count weights that two ranks share twice.
Answer compare_parameters(const RunResult& reference, const RunResult& subject) {
  constexpr double k_same_model = 0.05;
  const auto a = parameters_of(reference), b = parameters_of(subject);
  if (!a || !b) return Answer::unknown;
  const auto x = static_cast<double>(*a), y = static_cast<double>(*b);
  const auto &of_reference = reference.model_info.shape, &of_subject = subject.model_info.shape;
  if ((of_reference && is_active_count(y, *of_reference)) || (of_subject && is_active_count(x, *of_subject)))
    return Answer::equal;  // check_active_count
  return std::fabs(x - y) <= k_same_model * std::max(x, y) ? Answer::equal : Answer::other;
}

// "meta-llama/Llama-3.1-8B-Instruct" holds "Llama 3.1 8B".
Answer compare_full_names(const RunResult& reference, const RunResult& subject) {
  const std::string a = full_name_of(reference), b = full_name_of(subject);
  if (a.empty() || b.empty()) return Answer::unknown;
  const auto x = find_model(a), y = find_model(b);
  if (x && y) return x->name == y->name ? Answer::equal : Answer::other;
  const std::string one = fold_name(a), two = fold_name(b);
  const bool holds = one.find(two) != std::string::npos || two.find(one) != std::string::npos;
  return holds ? Answer::equal : Answer::other;
}

bool have_shapes(const RunResult& reference, const RunResult& subject) {
  return reference.model_info.shape && subject.model_info.shape;
}

// A setting and the frameworks' names for it: Megatron-LM, NeMo, torchtitan, Hugging Face, Primus.
struct PrintedSetting {
  const char* what;
  std::vector<std::string_view> names;
  bool is_count = false;  // "1" is one, not on
};

const std::vector<PrintedSetting>& data_settings() {
  static const std::vector<PrintedSetting> list = {
      {"packed sequences",
       {"packing", "packed_sequence", "pack_sequences", "use_packed_sequence", "dataset.packing",
        "data.packed_sequence", "model.data.packed_sequence", "model.data.train_ds.packed_sequence", "sft_packing"}},
      {"attention across documents", {"reset_attention_mask", "model.data.reset_attention_mask"}},
      {"attention dropout", {"attention_dropout", "model.attention_dropout"}},
      {"hidden dropout", {"hidden_dropout", "model.hidden_dropout"}},
      {"experts' input padded to their capacity",
       {"moe_pad_expert_input_to_capacity", "model.moe_pad_expert_input_to_capacity",
        "model.config.moe_pad_expert_input_to_capacity"}},
  };
  return list;
}

const PrintedSetting k_synthetic_data = {"synthetic data", {"mock_data", "data.mock_data"}};

const std::vector<PrintedSetting>& tuning_settings() {
  static const std::vector<PrintedSetting> list = {
      {"attention", {"attention_backend", "attn_implementation"}},
      {"flash attention", {"use_flash_attn", "use_flash_attention"}},
      {"compiled", {"compile.enable", "training.compile", "torch_compile"}},
      {"overlapped gradient reduction", {"overlap_grad_reduce", "model.optim.overlap_grad_sync", "overlap_comm"}},
      {"overlapped parameter gathering", {"overlap_param_gather"}},
      {"overlapped tensor parallelism", {"tp_comm_overlap", "model.ub_tp_comm_overlap"}},
      {"optimizer on the host", {"optimizer_cpu_offload", "cpu_offload", "training.enable_cpu_offload"}},
      {"weights gathered again", {"parallelism.fsdp_reshard_after_forward"}},
      {"CUDA graphs", {"enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl"}},
  };
  return list;
}

const PrintedSetting k_printed_recipe = {"FP8 recipe", {"fp8_recipe"}};

// Results of earlier versions have these only as printed.
const PrintedSetting k_printed_zero = {
    "ZeRO stage", {"zero_stage", "zero_optimization_stage", "zero_optimization.stage"}, true};
const PrintedSetting k_printed_recompute = {
    "recomputation",
    {"recompute_granularity", "activation_checkpoint.mode", "checkpoint_activations", "gradient_checkpointing"}};

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// "True", "true" and "1" are equal, and so are all absent values.
std::string plain_value(std::string value, bool is_count) {
  for (char& c : value) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (value == "true" || (value == "1" && !is_count)) return "on";
  if (value == "false" || number_of(value) == 0.0 || value == "none" || value == "null") return "off";
  return value;
}

std::optional<std::string> find_value(const RunResult& run, const PrintedSetting& setting) {
  if (!run.effective_config) return std::nullopt;
  for (const std::string_view name : setting.names) {
    const auto found = run.effective_config->find(std::string(name));
    if (found != run.effective_config->end() && !found->second.empty())
      return plain_value(found->second, setting.is_count);
  }
  return std::nullopt;
}

Evidences compare_printed(const RunResult& reference, const RunResult& subject,
                          std::span<const PrintedSetting> settings) {
  Evidences evidence;
  for (const PrintedSetting& setting : settings) {
    const auto x = find_value(reference, setting), y = find_value(subject, setting);
    const auto a = x ? number_of(*x) : std::nullopt, b = y ? number_of(*y) : std::nullopt;
    if (!a || !b || !is_equal(*a, *b)) add(evidence, setting.what, x, y);
  }
  return evidence;
}

}  // namespace

std::optional<int64_t> parameters_of(const RunResult& run) {
  const auto& shape = run.model_info.shape;
  if (shape && check_model(*shape, "").empty()) return count_parameters(*shape).total();
  if (run.model_info.num_parameters) return run.model_info.num_parameters;
  const auto known = find_model(run.model_info.full_name.value_or(""));
  return known ? std::optional(count_parameters(*known).total()) : std::nullopt;
}

Evidences find_other_work(const RunResult& reference, const RunResult& subject) {
  if (have_shapes(reference, subject)) return compare_shapes(reference, subject, Matter::work);
  const Answer by_count = compare_parameters(reference, subject);
  if (by_count == Answer::other)
    return {{"parameters", words(*parameters_of(reference)), words(*parameters_of(subject))}};
  if (by_count == Answer::unknown && compare_full_names(reference, subject) == Answer::other)
    return {{"model", full_name_of(reference), full_name_of(subject)}};
  return {};
}

bool is_model_unproven(const RunResult& reference, const RunResult& subject) {
  return !have_shapes(reference, subject) && compare_parameters(reference, subject) == Answer::unknown &&
         compare_full_names(reference, subject) == Answer::unknown;
}

Evidences find_other_details(const RunResult& reference, const RunResult& subject) {
  return have_shapes(reference, subject) ? compare_shapes(reference, subject, Matter::detail) : Evidences();
}

Evidences find_other_data_settings(const RunResult& reference, const RunResult& subject) {
  return compare_printed(reference, subject, data_settings());
}

Evidences find_synthetic_data(const RunResult& reference, const RunResult& subject) {
  return compare_printed(reference, subject, {&k_synthetic_data, 1});
}

Evidences find_other_tuning(const RunResult& reference, const RunResult& subject) {
  Evidences evidence;
  const ParallelismConfig &x = reference.parallelism_config, &y = subject.parallelism_config;
  add(evidence, "MBS", reference.training_config.micro_batch_size, subject.training_config.micro_batch_size);
  add(evidence, "ZeRO stage", x.zero_stage, y.zero_stage);
  add(evidence, "virtual pipeline", x.virtual_pipeline_model_parallel_size, y.virtual_pipeline_model_parallel_size);
  add(evidence, "embedding and loss as layers", x.embedding_and_loss_as_layers, y.embedding_and_loss_as_layers);
  add(evidence, "sequence parallelism", x.sequence_parallel, y.sequence_parallel);
  add(evidence, "dispatcher of tokens", dispatcher_of(reference), dispatcher_of(subject));
  std::vector<PrintedSetting> printed = tuning_settings();
  if (reference.precision == Precision::fp8 && subject.precision == Precision::fp8) printed.push_back(k_printed_recipe);
  if (!x.zero_stage || !y.zero_stage) printed.push_back(k_printed_zero);
  if (!reference.training_config.recompute || !subject.training_config.recompute)
    printed.push_back(k_printed_recompute);
  for (Evidence& each : compare_printed(reference, subject, printed)) evidence.push_back(std::move(each));
  return evidence;
}

}  // namespace tprimat::results

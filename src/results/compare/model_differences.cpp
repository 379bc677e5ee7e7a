#include "compare/model_differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

// A key that is not listed is work, under its own name: a new field of a shape decides something.
constexpr std::array k_shape_names = {ShapeName{"name", "", Matter::none},
                                      ShapeName{"full_name", "", Matter::none},
                                      ShapeName{"num_layers", "layers", Matter::work},
                                      ShapeName{"hidden_size", "hidden size", Matter::work},
                                      ShapeName{"ffn_hidden_size", "FFN size", Matter::work},
                                      ShapeName{"num_attention_heads", "heads", Matter::work},
                                      ShapeName{"num_key_value_heads", "KV heads", Matter::work},
                                      ShapeName{"head_dim", "head width", Matter::work},
                                      ShapeName{"vocab_size", "vocabulary", Matter::work},
                                      ShapeName{"num_experts", "experts", Matter::work},
                                      ShapeName{"experts_per_token", "experts per token", Matter::work},
                                      ShapeName{"sliding_window", "sliding window", Matter::work},
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

ShapeName name_of(std::string_view key) {
  const auto found =
      std::find_if(k_shape_names.begin(), k_shape_names.end(), [&](const ShapeName& each) { return each.key == key; });
  return found == k_shape_names.end() ? ShapeName{key, key.data(), Matter::work} : *found;
}

// A figure that a shape may lack is not unknown there: the model has no experts, or no window.
template <class T>
void compare_field(Evidences& evidence, const char* word, const std::optional<T>& a, const std::optional<T>& b) {
  if (a == b) return;
  evidence.push_back({word, a ? words(*a) : "none", b ? words(*b) : "none"});
}
template <class T>
void compare_field(Evidences& evidence, const char* word, const T& a, const T& b) {
  add(evidence, word, a, b);
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

// Every query of the sequence sees all keys through a window that is as long.
ModelSpec without_idle_window(ModelSpec shape, const std::optional<int64_t>& sequence_length) {
  if (shape.sliding_window && sequence_length && *shape.sliding_window >= *sequence_length)
    shape.sliding_window.reset();
  return shape;
}

// The most devices of either side that share a layer; a side may be padded for more than it runs on.
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
  const ModelSpec a = without_idle_window(*reference.model_info.shape, reference.training_config.sequence_length);
  const ModelSpec b = without_idle_window(*subject.model_info.shape, subject.training_config.sequence_length);
  Evidences evidence;
  for_each_field<ModelSpec>([&](const auto& field) {
    ShapeName name = name_of(field.key);
    if (field.key == "vocab_size" && is_padding(a.vocab_size, b.vocab_size, padded_for(reference, subject)))
      name.matter = Matter::detail;
    if (name.matter == wanted) compare_field(evidence, name.word, a.*field.member, b.*field.member);
  });
  return evidence;
}

std::string full_name_of(const RunResult& run) {
  const auto& shape = run.model_info.shape;
  return shape && !shape->full_name.empty() ? shape->full_name : run.model_info.full_name.value_or("");
}

enum class Answer { unknown, equal, other };

// Logs round the count, and count what two ranks share twice.
Answer compare_parameters(const RunResult& reference, const RunResult& subject) {
  constexpr double k_same_model = 0.05;
  const auto a = parameters_of(reference), b = parameters_of(subject);
  if (!a || !b) return Answer::unknown;
  const auto x = static_cast<double>(*a), y = static_cast<double>(*b);
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

}  // namespace tprimat::results

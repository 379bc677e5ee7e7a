#include "extract/result_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "extract/model_shape.h"
#include "extract/scan_text.h"
#include "result/consistency.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "spec/model_catalogue.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

bool is_near(double a, double b, double factor) { return a <= b * factor && b <= a * factor; }

// A vocabulary is padded so that tensor-parallel ranks share it evenly.
bool may_be_vocabulary_of(int64_t stated, int64_t known) {
  constexpr int64_t k_max_padding = 8192;
  return stated >= known - known / 100 && stated <= known + k_max_padding;
}

// Sizes that the log states and `model` does not have: "layers 32, not 80".
std::vector<std::string> contradictions(const RunResult& result, const ModelSpec& model, const StatedFacts& stated) {
  const LoggedShape shape = read_logged_shape(stated.settings);
  std::vector<std::string> sizes;
  const auto compare = [&](const char* name, const std::optional<int64_t>& said, int64_t known) {
    if (said && *said != known) sizes.push_back(fmt::format("{} {}, not {}", name, *said, known));
  };
  compare("layers", shape.num_layers, model.num_layers);
  compare("hidden size", shape.hidden_size, model.hidden_size);
  compare("attention heads", shape.num_attention_heads, model.num_attention_heads);
  compare("MLP size", shape.ffn_hidden_size, model.ffn_hidden_size);
  if (shape.num_experts && *shape.num_experts != model.num_experts.value_or(1))
    sizes.push_back(fmt::format("experts {}, not {}", *shape.num_experts, model.num_experts.value_or(0)));
  if (!shape.num_experts && !shape.routing.empty() && !model.num_experts)
    sizes.push_back(fmt::format("experts ({}), not a dense model", shape.routing));
  if (shape.vocab_size && !may_be_vocabulary_of(*shape.vocab_size, model.vocab_size))
    compare("vocabulary", shape.vocab_size, model.vocab_size);
  const auto parameters = static_cast<double>(count_parameters(model).total());
  if (stated.facts.parameters && !may_be_count_of(result, parameters))
    sizes.push_back(fmt::format("{} parameters, not {}", format_count(static_cast<double>(*stated.facts.parameters)),
                                format_count(parameters)));
  return sizes;
}

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
  const bool is_shard = devices > 1 && is_near(count * devices, all, k_same);
  return count < all * k_all && !is_shard ? trainable : std::nullopt;
}

}  // namespace

void settle_model(RunResult& result, const StatedFacts& stated, const std::string& known) {
  LoggedFacts facts = stated.facts;
  const bool is_given = !known.empty() && known != facts.model;
  if (!known.empty()) facts.model = known;
  ModelInfo& model = result.model_info;
  model.name = facts.model.value_or("");
  model.num_parameters = facts.parameters;
  model.shape = find_model_shape(stated.settings, facts);
  const auto named = find_named_model(facts);
  if (const auto sizes = named ? contradictions(result, *named, stated) : std::vector<std::string>(); !sizes.empty()) {
    if (is_given)
      throw Error(Problem{fmt::format("the log contradicts {}: it states {}", named->full_name, join(sizes, "; ")),
                          "--model",
                          "name the model that ran, or omit --model: the shape is read from the log where the "
                          "log states it"});
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
    add_warning(result, fmt::format("only part of the model is trained ({}); the log does not state how many of the "
                                    "model's parameters are",
                                    adapters));
}

}  // namespace tprimat::logs

#include "launch/megatron_core_limits.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace tprimat::suite {
namespace {

class LimitList {
 public:
  explicit LimitList(Framework framework) : name_(enum_name(framework)) {}

  void refuse_if(bool refused, const std::string& what, const std::string& hint) {
    if (refused) problems_.push_back({fmt::format("the framework '{}' {}", name_, what), "", hint});
  }
  std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::string_view name_;
  std::vector<Problem> problems_;
};

// Megatron Core's RotaryEmbedding holds these three of Llama 3.1 as constants.
bool is_llama31_scaling(const RopeScaling& scaling) {
  return scaling.low_freq_factor == 1.0 && scaling.high_freq_factor == 4.0 &&
         scaling.original_max_position_embeddings == 8192;
}

void check_model_limits(const TrainSpec& spec, LimitList& limits) {
  const ModelSpec& model = spec.model;
  limits.refuse_if(model.num_experts.has_value(), "trains dense models only, but this model has experts",
                   "choose a model without num_experts");
  if (const auto& scaling = model.rope_scaling) {
    limits.refuse_if(scaling->type == RopeScalingKind::yarn, "supports rope_scaling llama3 and linear, not yarn",
                     "choose another rope_scaling");
    limits.refuse_if(scaling->type == RopeScalingKind::llama3 && !is_llama31_scaling(*scaling),
                     "supports llama3 rope_scaling only with the values of Llama 3.1: low_freq_factor 1, "
                     "high_freq_factor 4, original_max_position_embeddings 8192",
                     "use these values");
  }
  limits.refuse_if(model.position == PositionKind::learned && model.max_position_embeddings != spec.sequence_length,
                   fmt::format("learns one position per token of a sequence, here {}, but the model has {}",
                               spec.sequence_length, model.max_position_embeddings),
                   "set sequence_length to max_position_embeddings");
}

void check_layout_limits(Framework framework, const TrainSpec& spec, LimitList& limits) {
  const ParallelSpec& layout = spec.parallel;
  limits.refuse_if(layout.zero_stage > 1, fmt::format("does not support ZeRO-{}", layout.zero_stage),
                   "set zero_stage to 0 or 1");
  limits.refuse_if(layout.ends_as_layers && framework == Framework::prim,
                   "cannot count the embedding and the loss as layers",
                   "choose a strategy without embedding_and_loss_as_layers");
  limits.refuse_if(layout.context > 1 && spec.sequence_length % (2 * layout.context) != 0,
                   fmt::format("splits a sequence into 2·CP parts, but {} tokens do not divide into {} equal ones",
                               spec.sequence_length, 2 * layout.context),
                   "choose another sequence_length or CP");
  limits.refuse_if(has_short_window(spec) && layout.context > 1,
                   "does not support a sliding window with context parallelism", "choose a strategy with CP 1");
  limits.refuse_if(!spec.checkpoint.initial_weights.empty(), "starts from random weights only",
                   "leave initial_weights out");
}

}  // namespace

bool has_short_window(const TrainSpec& spec) {
  return spec.model.sliding_window && *spec.model.sliding_window < spec.sequence_length;
}

bool shares_optimizer(const TrainSpec& spec, const std::optional<bool>& fp8_param) {
  return spec.parallel.zero_stage > 0 || (spec.precision == Precision::fp8 && fp8_param.value_or(false));
}

std::vector<Problem> find_megatron_core_limits(Framework framework, const TrainSpec& spec) {
  LimitList limits(framework);
  check_model_limits(spec, limits);
  check_layout_limits(framework, spec, limits);
  return limits.take();
}

}  // namespace tprimat::suite

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
  limits.refuse_if(model.num_experts.has_value(), "trains dense models only, and this one has experts",
                   "train it without num_experts");
  if (const auto& scaling = model.rope_scaling) {
    limits.refuse_if(scaling->type == RopeScalingKind::yarn,
                     "stretches rotary positions as llama3 or linear, not as yarn", "choose another rope_scaling");
    limits.refuse_if(scaling->type == RopeScalingKind::llama3 && !is_llama31_scaling(*scaling),
                     "has the rope_scaling of Llama 3.1: low_freq_factor 1, high_freq_factor 4, "
                     "original_max_position_embeddings 8192",
                     "give these values");
  }
  limits.refuse_if(model.position == PositionKind::learned && model.max_position_embeddings != spec.sequence_length,
                   fmt::format("learns one position for each token of a sequence, {} here, and the model has {}",
                               spec.sequence_length, model.max_position_embeddings),
                   "train with a sequence_length of max_position_embeddings");
}

void check_layout_limits(Framework framework, const TrainSpec& spec, LimitList& limits) {
  const ParallelSpec& layout = spec.parallel;
  limits.refuse_if(layout.zero_stage > 1, fmt::format("cannot do ZeRO-{}", layout.zero_stage),
                   "give the layout a zero_stage of 0 or 1");
  limits.refuse_if(layout.ends_as_layers && framework == Framework::prim,
                   "has no key that counts the embedding and the loss as layers",
                   "give it a strategy without embedding_and_loss_as_layers");
  limits.refuse_if(layout.context > 1 && spec.sequence_length % (2 * layout.context) != 0,
                   fmt::format("cuts a sequence into 2·CP parts, and {} tokens are not {} equal ones",
                               spec.sequence_length, 2 * layout.context),
                   "choose another sequence_length or CP");
  limits.refuse_if(has_short_window(spec) && layout.context > 1, "has no sliding window over context-parallel ranks",
                   "give it a strategy with CP of 1");
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

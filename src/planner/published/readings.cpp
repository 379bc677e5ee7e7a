#include "published/readings.h"

#include "published/framework_formulas.h"

namespace tprimat::planner {
namespace {

// A shape as the source may have counted it.
struct ShapeReading {
  ModelSpec shape;
  std::vector<std::string> deviations;
};

// Vocabularies of the papers that print none: Megatron's padded GPT-2 tokenizer, and BLOOM's.
constexpr int64_t k_usual_vocabularies[] = {51200, 250880};

// Shapes that a source counts with otherwise than the model's own say.
struct OtherShape {
  std::string_view model;
  int64_t key_heads;   // 0: as the model's
  int64_t vocabulary;  // 0: as the model's
  std::string_view source;
};
constexpr OtherShape k_other_shapes[] = {
    {"llama3.1_405b", 16, 0, "NVIDIA/dgxc-benchmarking llama3.1/README_405b.md at 143b90d (notes: 1 + 16/128)"},
    {"grok1_314b", 0, 128256, "NVIDIA/dgxc-benchmarking grok1/README.md at 1f6d9f4 (notes: Llama 3's tokenizer)"},
    {"gpt_oss_120b", 0, 32000,
     "NVIDIA-NeMo/Megatron-Bridge examples/model_verification_cards/gpt-oss-120b/card.yaml at 067f987 (pretrain: a "
     "SentencePiece tokenizer)"}};

// Adds what else a source may have counted; false where the plain shape itself is no reading.
using ShapeAxis = bool (*)(const RowInputs&, const ShapeReading&, std::vector<ShapeReading>&);

ModelSpec& add(std::vector<ShapeReading>& out, const ShapeReading& plain, const char* deviation) {
  out.push_back(plain);
  out.back().deviations.emplace_back(deviation);
  return out.back().shape;
}

bool read_vocabulary(const RowInputs& inputs, const ShapeReading& plain, std::vector<ShapeReading>& out) {
  const auto add_size = [&](const char* deviation, int64_t size) { add(out, plain, deviation).vocab_size = size; };
  if (!inputs.vocabulary_known) {
    for (const int64_t size : k_usual_vocabularies) add_size("assumed_vocabulary", size);
    return false;
  }
  const ModelSpec& m = plain.shape;
  for (const OtherShape& other : k_other_shapes)
    if (other.model == m.name && other.vocabulary != 0) add_size("other_vocabulary", other.vocabulary);
  const int64_t padded = padded_vocabulary(m.vocab_size, inputs.tensor_parallel);
  if (padded != m.vocab_size) add_size("padded_vocabulary", padded);
  return true;
}

bool read_layers(const RowInputs& inputs, const ShapeReading& plain, std::vector<ShapeReading>& out) {
  if (inputs.own_layers != 0) add(out, plain, "own_layers").num_layers = inputs.own_layers;
  return true;
}

// Of the kind that the equations of the Megatron papers are about.
bool is_gpt(const ModelSpec& model) { return model.mlp == MlpKind::gelu && !model.experts; }

bool read_key_heads(const RowInputs& inputs, const ShapeReading& plain, std::vector<ShapeReading>& out) {
  const ModelSpec& m = plain.shape;
  if (plain.shape.latent_attention) return true;
  if (is_gpt(*inputs.shape) && m.num_key_value_heads < m.num_attention_heads)
    add(out, plain, "multi_head_counted").num_key_value_heads = m.num_attention_heads;
  for (const OtherShape& other : k_other_shapes)
    if (other.model == m.name && other.key_heads != 0)
      add(out, plain, "other_key_heads").num_key_value_heads = other.key_heads;
  return true;
}

bool read_mlp(const RowInputs&, const ShapeReading& plain, std::vector<ShapeReading>& out) {
  if (plain.shape.mlp == MlpKind::swiglu) add(out, plain, "gate_not_counted").mlp = MlpKind::gelu;
  return true;
}

bool read_window(const RowInputs&, const ShapeReading& plain, std::vector<ShapeReading>& out) {
  if (plain.shape.sliding_window) add(out, plain, "window_not_counted").sliding_window.reset();
  return true;
}

bool read_prediction(const RowInputs&, const ShapeReading& plain, std::vector<ShapeReading>& out) {
  if (plain.shape.prediction_layers.value_or(0) != 0) add(out, plain, "prediction_not_counted").prediction_layers = 0;
  return true;
}

std::vector<ShapeReading> shape_readings(const RowInputs& inputs) {
  std::vector<ShapeReading> readings{{*inputs.shape, {}}};
  for (const ShapeAxis read : {read_vocabulary, read_layers, read_key_heads, read_mlp, read_window, read_prediction}) {
    std::vector<ShapeReading> wider;
    for (const ShapeReading& each : readings) {
      if (each.deviations.size() > k_max_deviations) continue;
      std::vector<ShapeReading> others;
      if (read(inputs, each, others)) wider.push_back(each);
      wider.insert(wider.end(), others.begin(), others.end());
    }
    readings = std::move(wider);
  }
  return readings;
}

double core_of(const FlopBreakdown& breakdown) {
  const PartCost* core = breakdown.find(FlopPart::attention_core);
  return core == nullptr ? 0 : core->total();
}

// The conventions of one shape, and how fine-tuning changes them.
class Collector {
 public:
  Collector(const RowInputs& inputs, const ShapeReading& shape, int64_t length, std::vector<std::string> deviations)
      : inputs_(inputs),
        full_(break_down(shape.shape, {length, false, 0})),
        causal_(break_down(shape.shape, {length, true, 0})),
        is_gpt_(is_gpt(*inputs.shape)),
        megatron_(megatron_flops(shape.shape, length, inputs.tensor_parallel)),
        deviations_(std::move(deviations)) {}

  void add_model(std::vector<FlopReading>& out) const {
    add_tuned(out, "full", full_.total());
    add_tuned(out, "causal", causal_.total());
    if (megatron_ != causal_.total()) add_tuned(out, "megatron", megatron_);
    add_tuned(out, "6n", six_n());
    add_tuned(out, "6n+full", six_n() + core_of(full_));
  }

  void add_hardware(std::vector<FlopReading>& out) const {
    if (inputs_.recompute == Recompute::none) return add_model(out);
    if (!inputs_.recompute && !is_gpt_) return;
    const Recompute recompute = inputs_.recompute.value_or(Recompute::full);
    std::vector<std::string> assumed = deviations_;
    if (!inputs_.recompute) assumed.push_back("assumed_recompute");
    add(out, "full, repeated", hardware_flops(full_, recompute), assumed);
    add(out, "causal, repeated", hardware_flops(causal_, recompute), assumed);
    if (recompute == Recompute::selective) {
      add(out, "full, 2205", hardware_flops_2205(full_, recompute), assumed);
      return;
    }
    constexpr double k_forward_again = 4.0 / 3.0;
    add(out, "full, whole pass repeated", full_.total() * k_forward_again, assumed);
    add(out, "causal, whole pass repeated", causal_.total() * k_forward_again, assumed);
    add(out, "6n+full, whole pass repeated", (six_n() + core_of(full_)) * k_forward_again, assumed);
  }

 private:
  double six_n() const {
    const auto counted = static_cast<double>(full_.active_parameters());
    return 6.0 * (inputs_.exact_parameters ? static_cast<double>(*inputs_.exact_parameters) : counted);
  }

  static void add(std::vector<FlopReading>& out, const std::string& convention, double flops,
                  const std::vector<std::string>& deviations) {
    out.push_back({{flops, flops}, convention, deviations});
  }

  // Frozen weights have no gradient of their own: 4 of 6 FLOPs remain (forward, and backward to the inputs). Of packed
  // samples the attention spans no more than each sample: somewhere between nothing and the whole sequence.
  void add_tuned(std::vector<FlopReading>& out, const std::string& convention, double flops) const {
    std::vector<std::string> deviations = deviations_;
    double share = 1;
    if (inputs_.tuning == TuningKind::adapters) {
      deviations.push_back("frozen_weights");
      share = 2.0 / 3.0;
    }
    add(out, convention, flops * share, deviations);
    if (inputs_.tuning == TuningKind::none || convention != "full") return;
    deviations.push_back("packed_samples");
    out.push_back({{(full_.total() - core_of(full_)) * share, full_.total() * share}, "full", deviations});
  }

  const RowInputs& inputs_;
  FlopBreakdown full_, causal_;
  bool is_gpt_ = false;
  double megatron_ = 0;
  std::vector<std::string> deviations_;
};

void add_framework_count(const RowInputs& inputs, const SequenceChoice& sequence, std::vector<FlopReading>& out) {
  const auto flops = framework_flops(inputs.counted_by_framework, 0, sequence.length);
  if (!flops) return;
  FlopReading reading{{*flops, *flops}, "megatron-bridge", {}};
  if (!sequence.deviation.empty()) reading.deviations.push_back(sequence.deviation);
  out.push_back(std::move(reading));
}

template <class Add>
std::vector<FlopReading> collect(const RowInputs& inputs, const SequenceChoice& sequence, Add add) {
  std::vector<FlopReading> readings;
  if (!inputs.counted_by_framework.empty()) add_framework_count(inputs, sequence, readings);
  if (!inputs.shape) return readings;
  for (const ShapeReading& shape : shape_readings(inputs)) {
    std::vector<std::string> deviations = shape.deviations;
    if (!sequence.deviation.empty()) deviations.push_back(sequence.deviation);
    if (deviations.size() <= k_max_deviations)
      add(Collector(inputs, shape, sequence.length, std::move(deviations)), readings);
  }
  return readings;
}

}  // namespace

const std::vector<DeviationRule>& deviation_rules() {
  static const std::vector<DeviationRule> rules = {
      {"assumed_length", "the row prints no sequence length; one of 8192, 4096, 2048, 1024 fits"},
      {"assumed_vocabulary",
       "the row prints no vocabulary; 51200 (GPT-2's, padded by Megatron) or 250880 (BLOOM) fits"},
      {"assumed_precision", "the row prints no precision; the BF16 peak fits"},
      {"assumed_recompute", "the row of a GPT prints no recomputation; full recomputation fits"},
      {"padded_vocabulary", "the vocabulary is padded to a multiple of 128 x TP"},
      {"multi_head_counted",
       "GPT-3's formula on a grouped-query model: key and value heads count as many as query heads"},
      {"other_key_heads", "the key and value heads of the model's first release are counted (Llama 3.1 405B: 16)"},
      {"other_vocabulary",
       "the vocabulary of another tokenizer is counted (Grok-1: Llama 3's, 128256; gpt-oss 120B: SentencePiece, "
       "32000)"},
      {"own_layers", "the model's own number of layers is counted, not the row's"},
      {"gate_not_counted", "the MLP's gate product is not counted: two products instead of three"},
      {"window_not_counted", "attention is counted without its sliding window"},
      {"prediction_not_counted", "multi-token prediction layers are not counted"},
      {"frozen_weights", "low-rank adapters: frozen weights count 4 FLOPs per token instead of 6"},
      {"packed_samples", "packed fine-tuning samples: attention counts between nothing and the whole sequence"},
      {"other_peak", "a peak other than the datasheet's: 2450/4900 (GB200, GB300), 989.5 (H100), 1300/2610 (MI300X)"},
      {"fp8_over_bf16_peak", "an FP8 run is compared with the BF16 peak"},
      {"rounded_flops", "the FLOPs per sequence were rounded to three digits before use"},
      {"averaged_steps",
       "TFLOP/s with more decimals than Megatron logs: the mean of steps that differ by up to 3 % and were each "
       "rounded to 0.1"},
      {"recipe_length", "the sequence length of the recipe is counted, not the row's (Nemotron 3 Super: 8192)"},
      {"figure_cut", "the figure was truncated, not rounded"},
      {"whole_samples", "tokens/s was derived from whole sequences per second of the job"},
      {"rounded_step", "tokens/s was derived from a step time rounded to 0.01 s"},
      {"noted_batch", "the batch in the row's note (GBS=...) is used instead of the printed one"},
      {"rates_disagree", "the row's step time and its tokens/s contradict each other; one of them fits"}};
  return rules;
}

std::vector<FlopReading> model_readings(const RowInputs& inputs, const SequenceChoice& sequence) {
  return collect(inputs, sequence, [](const Collector& from, std::vector<FlopReading>& out) { from.add_model(out); });
}

std::vector<FlopReading> hardware_readings(const RowInputs& inputs, const SequenceChoice& sequence) {
  return collect(inputs, sequence,
                 [](const Collector& from, std::vector<FlopReading>& out) { from.add_hardware(out); });
}

}  // namespace tprimat::planner

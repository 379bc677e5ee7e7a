#include "spec/flop_breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "spec/layer_weights.h"
#include "text/format.h"

namespace tprimat {
namespace {

constexpr int64_t k_vocabulary_divisor = 128;  // --make-vocab-size-divisible-by of Megatron-LM
constexpr double k_per_weight = 2.0;           // a multiplication and an addition per weight and token

// Where the model has that part.
void add_part(FlopBreakdown& breakdown, FlopPart part, int64_t parameters, int64_t active, double forward) {
  if (parameters != 0 || forward != 0) breakdown.parts.push_back({part, parameters, active, forward, 2 * forward, 0});
}

// `weights` multiply each token.
void add_product(FlopBreakdown& breakdown, FlopPart part, int64_t parameters, int64_t active, int64_t weights) {
  add_part(breakdown, part, parameters, active, k_per_weight * static_cast<double>(weights));
}

double core_forward(const ModelSpec& model, const BreakdownOptions& options, int64_t layers) {
  ModelSpec unwindowed = model;
  unwindowed.sliding_window.reset();
  const int64_t whole = std::min(layers, model.full_attention_layers.value_or(0));
  const double keys =
      static_cast<double>(layers - whole) * keys_per_query(model, options.sequence_length, options.causal) +
      static_cast<double>(whole) * keys_per_query(unwindowed, options.sequence_length, options.causal);
  return k_per_weight * keys * static_cast<double>(weights_of_layer(model).attention_core);
}

void add_mixers(FlopBreakdown& breakdown, const ModelSpec& model, const BreakdownOptions& options) {
  if (!model.mamba) return;
  const LayerWeights layer = weights_of_layer(model);
  const int64_t weights = model.mamba->layers * layer.mixer, extras = model.mamba->layers * layer.mixer_extras;
  add_product(breakdown, FlopPart::mamba_projections, weights, weights, weights);
  add_part(breakdown, FlopPart::mamba_scan, extras, extras,
           static_cast<double>(model.mamba->layers) * mamba_scan_forward(*model.mamba, options.causal));
}

void add_experts(FlopBreakdown& breakdown, const ModelSpec& model, const LayerWeights& layer) {
  if (!model.experts) return;
  const int64_t sparse = model.expert_layers(), expert = layer.expert + layer.expert_extras;
  const int64_t shared = layer.shared + layer.shared_extras, router = layer.router + layer.router_extras;
  add_product(breakdown, FlopPart::experts, sparse * (model.experts->count * expert + shared),
              sparse * (model.experts->per_token * expert + shared),
              sparse * (model.experts->per_token * layer.expert + layer.shared));
  add_product(breakdown, FlopPart::router, sparse * router, sparse * router, sparse * layer.router);
}

void add_prediction(FlopBreakdown& breakdown, const ModelSpec& model, const BreakdownOptions& options) {
  const int64_t layers = model.prediction_layers.value_or(0);
  if (layers == 0) return;
  const PredictionBlock block = prediction_block(model);
  const int64_t blocks = model.shared_prediction.value_or(false) ? 1 : layers;
  const int64_t weights = block.weights + model.vocab_size * model.hidden_size;
  add_part(
      breakdown, FlopPart::prediction, blocks * block.parameters, blocks * block.active_parameters,
      k_per_weight * static_cast<double>(weights) * static_cast<double>(layers) + core_forward(model, options, layers));
}

template <class Figure>
auto sum_of(const std::vector<PartCost>& parts, Figure figure) {
  std::decay_t<std::invoke_result_t<Figure, PartCost>> sum = 0;
  for (const PartCost& each : parts) sum += std::invoke(figure, each);
  return sum;
}

std::string breakdown_id(const BreakdownOptions& options) {
  const std::string id = formula_id(options.causal ? FlopFormula::causal : FlopFormula::full);
  if (options.tensor_parallel == 0) return id;
  return fmt::format("{}+pad{}x{}", id, k_vocabulary_divisor, options.tensor_parallel);
}

std::string format_whole(int64_t value) { return group_thousands(std::to_string(value)); }

std::string format_flops(double flops) { return format_si(flops, "FLOP"); }

void add_fp8(FlopReport& report, const FlopBreakdown& breakdown) {
  if (report.precision != Precision::fp8) return;
  report.fp8_share = fp8_share(breakdown);
  report.fp8_mfu_bound = 1 / (*report.fp8_share + 2 * (1 - *report.fp8_share));
}

std::string render_parts(const FlopReport& report) {
  TextTable table{{"part", "parameters", "active", "forward/token", "backward/token", "share"}, {}, {1, 2, 3, 4, 5}};
  double forward = 0, backward = 0;
  for (const PartCost& each : report.parts) {
    forward += each.forward, backward += each.backward;
    table.rows.push_back({std::string(enum_name(each.part)), format_whole(each.parameters),
                          format_whole(each.active_parameters), format_flops(each.forward), format_flops(each.backward),
                          format_percent(each.share)});
  }
  table.rows.push_back({"all", format_whole(report.parameters), format_whole(report.active_parameters),
                        format_flops(forward), format_flops(backward), format_percent(1)});
  return render_text(table);
}

std::string render_formulas(const FlopReport& report) {
  TextTable table{{"formula", "model FLOPs/token"}, {}, {1}};
  for (const auto& [formula, flops] : report.flops_per_token) table.rows.push_back({formula, format_flops(flops)});
  return render_text(table);
}

std::string render_recompute(const FlopReport& report) {
  if (report.recompute == Recompute::none) return "HFU / MFU: 1 (nothing is recomputed)\n";
  std::string text = fmt::format("HFU / MFU: {:.4f} ({} recomputation", report.hfu_factor, enum_name(report.recompute));
  if (report.recompute == Recompute::selective)
    text += fmt::format("); {:.4f} as arXiv 2205.05198 counts it", report.hfu_factor_2205);
  else
    text += ")";
  return text + "\n";
}

}  // namespace

int64_t FlopBreakdown::parameters() const { return sum_of(parts, &PartCost::parameters); }
int64_t FlopBreakdown::active_parameters() const { return sum_of(parts, &PartCost::active_parameters); }
double FlopBreakdown::forward() const { return sum_of(parts, &PartCost::forward); }
double FlopBreakdown::total() const { return sum_of(parts, &PartCost::total); }

const PartCost* FlopBreakdown::find(FlopPart part) const {
  const auto found = std::ranges::find(parts, part, &PartCost::part);
  return found == parts.end() ? nullptr : &*found;
}

int64_t padded_vocabulary(int64_t vocabulary, int64_t tensor_parallel) {
  if (tensor_parallel <= 0) return vocabulary;
  const int64_t multiple = k_vocabulary_divisor * tensor_parallel;
  return (vocabulary + multiple - 1) / multiple * multiple;
}

FlopBreakdown break_down(const ModelSpec& plain, const BreakdownOptions& options) {
  CHECK(options.sequence_length > 0);
  FlopBreakdown breakdown;
  breakdown.formula = breakdown_id(options);
  breakdown.vocabulary = padded_vocabulary(plain.vocab_size, options.tensor_parallel);
  ModelSpec model = plain;
  model.vocab_size = breakdown.vocabulary;
  const ParameterCount count = count_parameters(model);
  const LayerWeights layer = weights_of_layer(model);
  const int64_t attention = model.attention_layers(), dense = model.dense_layers();
  const int64_t mlp = dense * (layer.mlp + layer.mlp_extras);
  add_part(breakdown, FlopPart::embedding, count.embedding, count.embedding, 0);
  add_product(breakdown, FlopPart::attention_projections, count.attention, count.attention,
              attention * layer.attention);
  add_part(breakdown, FlopPart::attention_core, 0, 0, core_forward(model, options, attention));
  add_mixers(breakdown, model, options);
  add_product(breakdown, FlopPart::mlp, mlp, mlp, dense * layer.mlp);
  add_experts(breakdown, model, layer);
  add_part(breakdown, FlopPart::norms, count.norms, count.norms, 0);
  add_product(breakdown, FlopPart::head, count.head, count.head, model.vocab_size * model.hidden_size);
  add_prediction(breakdown, model, options);
  return breakdown;
}

double flops_per_token(const ModelSpec& model, int64_t sequence_length, FlopFormula formula,
                       std::optional<int64_t> trainable_parameters) {
  CHECK(sequence_length > 0);
  const ParameterCount parameters = count_parameters(model);
  const bool by_parameters = formula == FlopFormula::six_n;
  const int64_t weights = by_parameters ? parameters.active() : parameters.matmul_active;
  const int64_t trained = std::clamp<int64_t>(trainable_parameters.value_or(weights), 0, weights);
  const double flops = by_parameters ? 6.0 * static_cast<double>(weights)
                                     : break_down(model, {sequence_length, formula == FlopFormula::causal, 0}).total();
  return flops - 2.0 * static_cast<double>(weights - trained);
}

double mamba_scan_forward(const MambaMixers& mamba, bool causal) {
  const auto width = static_cast<double>(mamba.inner_width), state = static_cast<double>(mamba.state);
  if (causal || mamba.chunk == 0) return 7 * width * state;
  const auto chunk = static_cast<double>(mamba.chunk), groups = static_cast<double>(mamba.groups);
  return k_per_weight * (chunk * state * groups + chunk * width + 2 * state * width);
}

double hardware_flops(const FlopBreakdown& breakdown, Recompute recompute) {
  double again = 0;
  for (const PartCost& each : breakdown.parts) {
    const bool core = each.part == FlopPart::attention_core;
    if (recompute == Recompute::full ? each.part != FlopPart::head : recompute == Recompute::selective && core)
      again += each.forward;
  }
  return breakdown.total() + again;
}

double hardware_flops_2205(const FlopBreakdown& breakdown, Recompute recompute) {
  if (recompute != Recompute::selective) return hardware_flops(breakdown, recompute);
  const PartCost* core = breakdown.find(FlopPart::attention_core);
  return breakdown.total() + (core == nullptr ? 0 : core->total());
}

double fp8_share(const FlopBreakdown& breakdown) {
  double fp8 = 0;
  for (const PartCost& each : breakdown.parts)
    if (each.part == FlopPart::attention_projections || each.part == FlopPart::mamba_projections ||
        each.part == FlopPart::mlp || each.part == FlopPart::experts)
      fp8 += each.total();
  return fp8 / breakdown.total();
}

FlopReport make_flop_report(const KnownModel& known, const FlopRequest& request) {
  BreakdownOptions options{request.sequence_length, true, request.tensor_parallel};
  const FlopBreakdown causal = break_down(known.spec, options);
  options.causal = false;
  const FlopBreakdown full = break_down(known.spec, options);
  FlopReport report;
  report.model = known.spec.name;
  report.name = known.spec.full_name;
  if (!known.source.empty()) report.source = known.source;
  report.sequence_length = options.sequence_length;
  report.vocabulary = causal.vocabulary;
  report.formula = causal.formula;
  report.precision = request.precision;
  report.recompute = request.recompute;
  report.parts = causal.parts;
  for (PartCost& each : report.parts) each.share = each.total() / causal.total();
  report.parameters = causal.parameters();
  report.active_parameters = causal.active_parameters();
  report.flops_per_token = {{causal.formula, causal.total()},
                            {full.formula, full.total()},
                            {formula_id(FlopFormula::six_n), 6.0 * static_cast<double>(causal.active_parameters())}};
  report.hfu_factor = hardware_flops(causal, request.recompute) / causal.total();
  report.hfu_factor_2205 = hardware_flops_2205(full, request.recompute) / full.total();
  add_fp8(report, causal);
  return report;
}

std::string render_flop_report(const FlopReport& report) {
  std::string text =
      fmt::format("{} ({}), SL {}, vocabulary {}, {}, counted by {}\n\n{}\n{}\n{}", report.name, report.model,
                  report.sequence_length, report.vocabulary, enum_name(report.precision), report.formula,
                  render_parts(report), render_formulas(report), render_recompute(report));
  if (report.fp8_share)
    text += fmt::format(
        "FP8: {} of the FLOPs are in products that run in FP8; MFU is over the FP8 peak and at most {} where BF16 runs "
        "at half of it\n",
        format_percent(*report.fp8_share), format_percent(*report.fp8_mfu_bound));
  if (report.source) text += fmt::format("shape: {}\n", *report.source);
  return text;
}

}  // namespace tprimat

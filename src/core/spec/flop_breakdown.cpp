#include "spec/flop_breakdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "text/format.h"

namespace tprimat {
namespace {

constexpr int64_t k_vocabulary_divisor = 128;  // --make-vocab-size-divisible-by of Megatron-LM
constexpr double k_per_weight = 2.0;           // a multiplication and an addition per weight and token

// Figures of one layer.
struct LayerCost {
  int64_t projections = 0;  // weights
  int64_t latent_norms = 0;
  double core_width = 0;  // width of queries against keys, plus that of values
  int64_t mixer = 0;      // weights of a Mamba mixer's two products
  int64_t expert = 0;     // weights of one expert
  int64_t shared = 0;     // weights of a layer of experts that every token passes
  int64_t dense = 0;
  int64_t router = 0;
};

void add_attention(LayerCost& cost, const ModelSpec& m) {
  const int64_t query = m.num_attention_heads * m.head_dim, key = m.num_key_value_heads * m.head_dim;
  cost.projections = 2 * m.hidden_size * (query + key);
  cost.core_width = static_cast<double>(2 * query);
}

void add_latent_attention(LayerCost& cost, const ModelSpec& m, const LatentAttention& a) {
  const int64_t heads = m.num_attention_heads, query = heads * (m.head_dim + a.rope_head_dim);
  cost.projections = a.query_rank > 0 ? a.query_rank * (m.hidden_size + query) : m.hidden_size * query;
  cost.projections += m.hidden_size * (a.key_value_rank + a.rope_head_dim) +
                      a.key_value_rank * heads * (m.head_dim + a.value_head_dim) +
                      heads * a.value_head_dim * m.hidden_size;
  cost.latent_norms = a.query_rank + a.key_value_rank;
  cost.core_width = static_cast<double>(query + heads * a.value_head_dim);
}

LayerCost cost_of_layer(const CountedModel& counted) {
  const ModelSpec& m = counted.model;
  const int64_t matrices = m.mlp == MlpKind::swiglu ? 3 : 2;
  LayerCost cost;
  if (counted.latent)
    add_latent_attention(cost, m, *counted.latent);
  else
    add_attention(cost, m);
  if (counted.mamba) {
    const MambaMixers& mamba = *counted.mamba;
    const int64_t in = 2 * mamba.inner_width + 2 * mamba.groups * mamba.state + mamba.heads;
    cost.mixer = m.hidden_size * (in + mamba.inner_width);
  }
  const int64_t latent = counted.latent_expert_width;
  cost.expert = matrices * (latent > 0 ? latent : m.hidden_size) * m.ffn_hidden_size;
  cost.shared = matrices * m.hidden_size * counted.shared_ffn + 2 * m.hidden_size * latent;
  cost.dense = matrices * m.hidden_size * counted.dense_ffn;
  cost.router = m.num_experts.value_or(0) * m.hidden_size;
  return cost;
}

// Where the model has that part.
void add_part(FlopBreakdown& breakdown, FlopPart part, int64_t parameters, int64_t active, double forward) {
  if (parameters != 0 || forward != 0) breakdown.parts.push_back({part, parameters, active, forward, 2 * forward, 0});
}

// `weights` multiply each token.
void add_product(FlopBreakdown& breakdown, FlopPart part, int64_t parameters, int64_t active, int64_t weights) {
  add_part(breakdown, part, parameters, active, k_per_weight * static_cast<double>(weights));
}

// A convolution over x, B and C with biases, a decay, a step and a skip per head, and the weights of a norm.
int64_t plain_weights(const MambaMixers& mamba) {
  return (mamba.convolution + 1) * (mamba.inner_width + 2 * mamba.groups * mamba.state) + 3 * mamba.heads +
         mamba.inner_width;
}

void add_mixers(FlopBreakdown& breakdown, const CountedModel& counted, const BreakdownOptions& options) {
  if (!counted.mamba) return;
  const MambaMixers& mamba = *counted.mamba;
  const int64_t weights = mamba.layers * cost_of_layer(counted).mixer, plain = mamba.layers * plain_weights(mamba);
  add_product(breakdown, FlopPart::mamba_projections, weights, weights, weights);
  add_part(breakdown, FlopPart::mamba_scan, plain, plain,
           static_cast<double>(mamba.layers) * mamba_scan_forward(mamba, options.causal));
}

double core_forward(const CountedModel& counted, const BreakdownOptions& options, int64_t layers) {
  ModelSpec unwindowed = counted.model;
  unwindowed.sliding_window.reset();
  const int64_t whole = std::min(layers, counted.unwindowed_layers);
  const double keys =
      static_cast<double>(layers - whole) * keys_per_query(counted.model, options.sequence_length, options.causal) +
      static_cast<double>(whole) * keys_per_query(unwindowed, options.sequence_length, options.causal);
  return k_per_weight * keys * cost_of_layer(counted).core_width;
}

int64_t active_expert_weights(const CountedModel& counted, const LayerCost& layer) {
  return counted.model.experts_per_token.value_or(1) * layer.expert + layer.shared;
}

void add_mlps(FlopBreakdown& breakdown, const CountedModel& counted, const ParameterCount& count) {
  const ModelSpec& m = counted.model;
  const LayerCost layer = cost_of_layer(counted);
  if (!m.num_experts) {
    const int64_t weights = counted.mamba ? counted.layers_with_mlp() * layer.expert : count.mlp;
    add_product(breakdown, FlopPart::mlp, weights, weights, counted.layers_with_mlp() * layer.expert);
    return;
  }
  const int64_t sparse = counted.layers_with_mlp() - counted.dense_layers;
  const int64_t active = sparse * active_expert_weights(counted, layer);
  const int64_t biases = counted.mamba ? 0
                                       : (count.mlp - m.num_layers * (*m.num_experts * layer.expert + layer.router)) /
                                             (m.num_layers * *m.num_experts);
  const int64_t dense = counted.dense_layers * layer.dense;
  add_product(breakdown, FlopPart::mlp, dense, dense, dense);
  add_product(breakdown, FlopPart::experts, sparse * (*m.num_experts * (layer.expert + biases) + layer.shared),
              active + sparse * *m.experts_per_token * biases, active);
  add_product(breakdown, FlopPart::router, sparse * layer.router, sparse * layer.router, sparse * layer.router);
}

// Each is one more block of the last kind (of a hybrid: attention and experts) with a product that joins two streams,
// and reads the model's own head.
void add_prediction(FlopBreakdown& breakdown, const CountedModel& counted, const BreakdownOptions& options,
                    int64_t vocabulary) {
  const int64_t count = counted.prediction_layers;
  if (count == 0) return;
  const LayerCost layer = cost_of_layer(counted);
  const ModelSpec& m = counted.model;
  const int64_t joined = 2 * m.hidden_size * m.hidden_size;
  const int64_t weights = layer.projections + active_expert_weights(counted, layer) + layer.router + joined;
  const int64_t all = layer.projections + layer.latent_norms + m.num_experts.value_or(1) * layer.expert + layer.shared +
                      layer.router + joined + 5 * m.hidden_size;
  const double forward = k_per_weight * static_cast<double>(weights + vocabulary * m.hidden_size) * count +
                         core_forward(counted, options, count);
  const int64_t blocks = counted.shared_prediction ? 1 : count;
  add_part(breakdown, FlopPart::prediction, blocks * all, blocks * weights, forward);
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

FlopBreakdown break_down(const CountedModel& counted, const BreakdownOptions& options) {
  CHECK(options.sequence_length > 0);
  FlopBreakdown breakdown;
  breakdown.formula = breakdown_id(options);
  breakdown.vocabulary = padded_vocabulary(counted.model.vocab_size, options.tensor_parallel);
  ModelSpec m = counted.model;
  m.vocab_size = breakdown.vocabulary;
  const ParameterCount count = count_parameters(m);
  const LayerCost layer = cost_of_layer(counted);
  const int64_t attention = counted.layers_with_attention(), table = m.vocab_size * m.hidden_size;
  const bool plain = !counted.latent && !counted.mamba;
  const int64_t projections = plain ? count.attention : attention * layer.projections;
  const int64_t norms =
      (counted.mamba ? (m.num_layers + 1) * m.hidden_size : count.norms) + attention * layer.latent_norms;
  add_part(breakdown, FlopPart::embedding, count.embedding, count.embedding, 0);
  add_product(breakdown, FlopPart::attention_projections, projections, projections, attention * layer.projections);
  add_part(breakdown, FlopPart::attention_core, 0, 0, core_forward(counted, options, attention));
  add_mixers(breakdown, counted, options);
  add_mlps(breakdown, counted, count);
  add_part(breakdown, FlopPart::norms, norms, norms, 0);
  add_product(breakdown, FlopPart::head, count.head, count.head, table);
  add_prediction(breakdown, counted, options, m.vocab_size);
  return breakdown;
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

FlopReport make_flop_report(const CountedModel& counted, const FlopRequest& request) {
  BreakdownOptions options{request.sequence_length, true, request.tensor_parallel};
  const FlopBreakdown causal = break_down(counted, options);
  options.causal = false;
  const FlopBreakdown full = break_down(counted, options);
  FlopReport report;
  report.model = counted.model.name;
  report.name = counted.model.full_name;
  if (!counted.source.empty()) report.source = counted.source;
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
                            {formula_id(FlopFormula::six_n), 6.0 * static_cast<double>(causal.parameters())}};
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

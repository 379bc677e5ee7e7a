#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/model_catalogue.h"
#include "spec/train_spec.h"
#include "text/fields.h"

namespace tprimat {

enum class FlopPart {
  embedding,
  attention_projections,
  attention_core,
  mamba_projections,
  mamba_scan,
  mlp,
  experts,
  router,
  norms,
  head,
  prediction
};
constexpr auto enum_table(FlopPart) {
  return std::to_array<std::pair<FlopPart, std::string_view>>(
      {{FlopPart::embedding, "embedding"},
       {FlopPart::attention_projections, "attention projections"},
       {FlopPart::attention_core, "attention core"},
       {FlopPart::mamba_projections, "Mamba projections"},
       {FlopPart::mamba_scan, "Mamba scan"},
       {FlopPart::mlp, "MLP"},
       {FlopPart::experts, "experts"},
       {FlopPart::router, "router"},
       {FlopPart::norms, "norms"},
       {FlopPart::head, "head"},
       {FlopPart::prediction, "prediction layers"}});
}

// One component of all layers together. FLOPs are those of matrix products, per token.
struct PartCost {
  FlopPart part = FlopPart::embedding;
  int64_t parameters = 0;
  int64_t active_parameters = 0;  // those that one token passes
  double forward = 0;
  double backward = 0;  // twice the forward: with respect to inputs and to weights
  double share = 0;     // of the model FLOPs, in a report
  double total() const { return forward + backward; }

  static constexpr auto fields() {
    using P = PartCost;
    return field_list(field("part", &P::part, "component, all layers together"),
                      field("parameters", &P::parameters, "weights, biases and norms"),
                      field("active_parameters", &P::active_parameters, "those that one token passes"),
                      field("forward", &P::forward, "FLOPs of matrix products per token, forward"),
                      field("backward", &P::backward, "FLOPs of matrix products per token, backward"),
                      field("share", &P::share, "of the model FLOPs"));
  }
};

struct FlopBreakdown {
  std::string formula;          // "causal/1"; with a padded vocabulary "causal/1+pad128x8"
  int64_t vocabulary = 0;       // as counted: padded where asked for
  std::vector<PartCost> parts;  // those that the model has

  int64_t parameters() const;
  int64_t active_parameters() const;
  double forward() const;
  double total() const;  // model FLOPs per token, forward and backward
  const PartCost* find(FlopPart part) const;
};

struct BreakdownOptions {
  int64_t sequence_length = 0;
  bool causal = true;           // attention as `causal` counts it, else as `full` does
  int64_t tensor_parallel = 0;  // Megatron pads the vocabulary to a multiple of 128 x this; 0: no padding
};

// The sum of the parts is flops_per_token() (spec/model_spec.h), but for a padded vocabulary.
FlopBreakdown break_down(const ModelSpec& model, const BreakdownOptions& options);

// Forward FLOPs of one Mamba-2 mixer's scan, per token. `causal`: 7 x width x state, as Megatron-LM counts a recurrence
// over the states. Else the four products of the chunked algorithm (arXiv 2405.21060, section 6) in full, where the
// chunk is known.
double mamba_scan_forward(const MambaMixers& mamba, bool causal);

// The vocabulary, padded as Megatron-LM's --make-vocab-size-divisible-by 128 does for its tensor-parallel ranks.
int64_t padded_vocabulary(int64_t vocabulary, int64_t tensor_parallel);

// FLOPs that the hardware does per token: the model's and the recomputed ones.
//   selective   the attention core's forward pass once more
//   full        the forward pass of all layers once more (arXiv 2104.04473, eq. 3); embedding and head are not repeated
// The ratio to FlopBreakdown::total() is HFU / MFU.
double hardware_flops(const FlopBreakdown& breakdown, Recompute recompute);

// The same by arXiv 2205.05198, appendix A, whose selective recomputation counts the attention core's forward and
// backward pass once more: 72BLsh^2 (1 + s/3h + V/12hL).
double hardware_flops_2205(const FlopBreakdown& breakdown, Recompute recompute);

// Share of the FLOPs in products that FP8 training computes in FP8: the linear layers of the blocks and experts. The
// attention core, the router and the head stay in BF16 (arXiv 2209.05433; Transformer Engine's default recipe).
double fp8_share(const FlopBreakdown& breakdown);

struct FlopRequest {
  int64_t sequence_length = 0;
  int64_t tensor_parallel = 0;  // 0: no padding
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
};

struct FlopReport {
  std::string model, name;
  std::optional<std::string> source;
  int64_t sequence_length = 0, vocabulary = 0;
  std::string formula;  // of the parts
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  std::vector<PartCost> parts;
  int64_t parameters = 0, active_parameters = 0;
  std::map<std::string, double> flops_per_token;  // by formula
  double hfu_factor = 1, hfu_factor_2205 = 1;
  std::optional<double> fp8_share, fp8_mfu_bound;

  static constexpr auto fields() {
    using R = FlopReport;
    return field_list(
        field("model", &R::model, "key"), field("name", &R::name, "for people"),
        field("source", &R::source, "where the shape was stated"),
        field("sequence_length", &R::sequence_length, "tokens"),
        field("vocabulary", &R::vocabulary, "tokens, padded where asked for"),
        field("formula", &R::formula, "by which the parts were counted"),
        field("precision", &R::precision, "of the products' inputs"),
        field("recompute", &R::recompute, "activations that are computed twice"),
        field("parts", &R::parts, "components"), field("parameters", &R::parameters, "all"),
        field("active_parameters", &R::active_parameters, "those that one token passes"),
        field("flops_per_token", &R::flops_per_token, "model FLOPs of forward and backward, by formula"),
        field("hfu_factor", &R::hfu_factor, "HFU / MFU: what is recomputed counts once more"),
        field("hfu_factor_2205", &R::hfu_factor_2205, "HFU / MFU as arXiv 2205.05198, appendix A, counts"),
        field("fp8_share", &R::fp8_share, "share of the FLOPs in products that run in FP8"),
        field("fp8_mfu_bound", &R::fp8_mfu_bound, "highest MFU over the FP8 peak, where BF16 is half as fast"));
  }
};

FlopReport make_flop_report(const KnownModel& known, const FlopRequest& request);
std::string render_flop_report(const FlopReport& report);

}  // namespace tprimat

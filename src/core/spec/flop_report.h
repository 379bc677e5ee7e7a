#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/flop_breakdown.h"
#include "text/fields.h"

namespace tprimat {

struct FlopRequest {
  int64_t sequence_length = 0;
  int64_t tensor_parallel = 0;  // 0: no padding
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
};

struct FlopReportPart {
  FlopPart part = FlopPart::embedding;
  int64_t parameters = 0, active_parameters = 0;
  double forward = 0, backward = 0, share = 0;

  static constexpr auto fields() {
    using P = FlopReportPart;
    return field_list(field("part", &P::part, "component, all layers together"),
                      field("parameters", &P::parameters, "weights, biases and norms"),
                      field("active_parameters", &P::active_parameters, "those that one token passes"),
                      field("forward", &P::forward, "FLOPs of matrix products per token, forward"),
                      field("backward", &P::backward, "FLOPs of matrix products per token, backward"),
                      field("share", &P::share, "of the model FLOPs"));
  }
};

struct FlopReport {
  std::string model, name;
  std::optional<std::string> source;
  int64_t sequence_length = 0, vocabulary = 0;
  std::string formula;  // of the parts
  Precision precision = Precision::bf16;
  Recompute recompute = Recompute::none;
  std::vector<FlopReportPart> parts;
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

FlopReport make_flop_report(const CountedModel& counted, const FlopRequest& request);
std::string render_flop_report(const FlopReport& report);

}  // namespace tprimat

#include "spec/flop_report.h"

#include <fmt/format.h>

#include "text/format.h"

namespace tprimat {
namespace {

// 8030261248 -> "8 030 261 248"
std::string group_thousands(int64_t value) {
  std::string digits = std::to_string(value);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<size_t>(at), " ");
  return digits;
}

std::string format_flops(double flops) { return format_si(flops, "FLOP"); }

void add_fp8(FlopReport& report, const FlopBreakdown& breakdown) {
  if (report.precision != Precision::fp8) return;
  report.fp8_share = fp8_share(breakdown);
  report.fp8_mfu_bound = 1 / (*report.fp8_share + 2 * (1 - *report.fp8_share));
}

std::string render_parts(const FlopReport& report) {
  TextTable table{{"part", "parameters", "active", "forward/token", "backward/token", "share"}, {}, {1, 2, 3, 4, 5}};
  double forward = 0, backward = 0;
  for (const FlopReportPart& each : report.parts) {
    forward += each.forward, backward += each.backward;
    table.rows.push_back({std::string(enum_name(each.part)), group_thousands(each.parameters),
                          group_thousands(each.active_parameters), format_flops(each.forward),
                          format_flops(each.backward), format_percent(each.share)});
  }
  table.rows.push_back({"all", group_thousands(report.parameters), group_thousands(report.active_parameters),
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
  for (const PartCost& each : causal.parts)
    report.parts.push_back({each.part, each.parameters, each.active_parameters, each.forward, each.backward,
                            each.total() / causal.total()});
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

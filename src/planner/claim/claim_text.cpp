#include <fmt/format.h>

#include <map>

#include "claim/claim.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

std::string format_rate(double rate) { return format_count(rate); }

std::string render_head(const ClaimReport& r) {
  std::string text = fmt::format("{}: {}\n\n", enum_name(*r.verdict), printable(r.reason));
  const std::string gpus = r.gpus > 0 ? fmt::format("{} {}", r.gpus, r.gpu) : r.gpu;
  text +=
      fmt::format("{} on {}, {}, sequence length {}: {} tokens/s per GPU (from {})\n", printable(r.model.substr(0, 60)),
                  gpus, enum_name(r.precision), r.sequence_length, format_rate(r.tokens_per_second_per_gpu), r.from);
  text += r.standing ? describe_standing(*r.standing) : format_percent(r.mfu) + " MFU";
  text += "\n";
  for (const std::string& note : r.notes) text += printable(note) + "\n";
  return text;
}

std::string render_suspicions(const ClaimReport& r) {
  if (r.suspicions.empty()) return "";
  TextTable table{{"suspicion", "explanation", "corrected MFU"}, {}, {2}};
  for (const Suspicion& each : r.suspicions)
    table.rows.push_back({std::string(enum_name(each.mistake)), each.sentence, format_percent(each.mfu)});
  return "\n" + render_text(table);
}

std::string render_conventions(const ClaimReport& r) {
  TextTable table{{"convention", "TFLOP/s per GPU", "MFU", "counts"}, {}, {1, 2}};
  for (const ConventionLine& each : r.conventions)
    table.rows.push_back({std::string(enum_name(each.convention)), format_significant(each.tflops_per_gpu, 4),
                          format_percent(each.mfu), each.meaning});
  return "\n" + render_text(table);
}

std::string render_range(const ExpectedRate& e, const std::string& basis) {
  return fmt::format("{} to {} tokens/s per GPU, central value {} ({})\n", format_rate(e.low), format_rate(e.high),
                     format_rate(e.middle), basis);
}

std::string render_expected(const ClaimReport& r) {
  std::string text = fmt::format("\npossible  up to {} MFU: {}\n", format_percent(r.limit_mfu, 0), r.limit_basis);
  if (r.expected) text += "expected  " + render_range(*r.expected, r.expected->basis);
  if (r.planned) text += "planner   " + render_range(*r.planned, r.layout.value_or(""));
  if (r.planned && !r.planned->basis.empty()) text += fmt::format("          its range: {}\n", r.planned->basis);
  if (r.not_predicted) text += fmt::format("planner   no prediction: {}\n", printable(*r.not_predicted));
  return text + (r.expected ? "80 % of comparable trainings lie within these ranges.\n" : "");
}

std::string render_nearest(const ClaimReport& r) {
  if (r.nearest.empty()) return "\nno published run has similar settings\n";
  TextTable table{{"published run", "tokens/s per GPU", "MFU", "differs from the claim"}, {}, {1, 2}};
  for (const NearRun& each : r.nearest)
    table.rows.push_back({each.id, format_rate(each.tokens_per_second_per_gpu), format_percent(each.mfu),
                          each.differences.empty() ? "in no stated setting" : join(each.differences, ", ")});
  std::string rank;
  if (r.rank && r.standing)
    rank = fmt::format("rank {} of {} among the published runs of its kind: same GPU, precision and kind of model\n",
                       *r.rank, r.standing->rows + 1);
  return "\n" + render_text(table) + rank;
}

}  // namespace

std::string render_claim(const ClaimReport& report) {
  if (report.missing) return fmt::format("not judged: {}\n", printable(*report.missing));
  return render_head(report) + render_suspicions(report) + render_conventions(report) + render_expected(report) +
         render_nearest(report);
}

std::string render_claims(const std::vector<ClaimReport>& reports) {
  TextTable table{{"line", "model", "GPU", "GPUs", "tokens/s per GPU", "MFU", "verdict", "why"}, {}, {0, 3, 4, 5}};
  std::map<std::string, int64_t> counts;
  for (const ClaimReport& r : reports) {
    const std::string verdict = r.verdict ? std::string(enum_name(*r.verdict)) : "not judged";
    ++counts[verdict];
    const bool judged = r.verdict.has_value();
    const std::string why = r.missing ? *r.missing
                            : r.suspicions.empty()
                                ? r.reason
                                : fmt::format("{}: {}", enum_name(r.suspicions.front().mistake), r.reason);
    table.rows.push_back({r.line ? std::to_string(*r.line) : "", printable(r.model.substr(0, 30)),
                          printable(r.gpu.substr(0, 24)), r.gpus > 0 ? std::to_string(r.gpus) : "",
                          judged ? format_rate(r.tokens_per_second_per_gpu) : "", judged ? format_percent(r.mfu) : "",
                          verdict, printable(why)});
  }
  std::string text = render_text(table) + "\n";
  for (const auto& [verdict, count] : counts) text += fmt::format("{}: {}\n", verdict, count);
  return text;
}

}  // namespace tprimat::planner

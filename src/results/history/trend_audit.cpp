#include "history/trend_audit.h"

#include "base/error.h"
#include "base/parallel_for.h"
#include "compare/load_runs.h"

namespace tprimat::results {
namespace {

Contender load_contender(const std::vector<std::string>& files, const std::filesystem::path& folder, const char* label,
                         const AuditOptions& options) {
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back((folder / file).string());
  Contender contender{"", label, load_runs(paths).runs, {}};
  contender.findings = audit_contender(contender, options);
  return contender;
}

// What is missing is missing in the series too, and a copy is named there.
bool forbids(const Finding& finding) {
  return finding.severity == Severity::error && finding.code != "rate_missing" && finding.code != "model_missing";
}

std::optional<std::string> first_error(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    if (forbids(finding)) return finding.sentence;
  return std::nullopt;
}

std::optional<std::string> why_not(const Contender& earlier, const Contender& newest, const Metric& metric,
                                   const AuditOptions& options) {
  const std::vector<Finding> of_pair = audit_pair(earlier, newest, options);
  for (const auto* findings : {&of_pair, &newest.findings, &earlier.findings})
    if (auto error = first_error(*findings)) return error;
  return why_not_compared(metric, of_pair, earlier, newest);
}

// A file that was taken away meanwhile leaves the pair without an answer.
void audit_step(TrendStep& step, const Trend& trend, const std::filesystem::path& folder, const Metric& metric,
                const AuditOptions& options) {
  std::optional<std::string> why;
  try {
    const Contender earlier = load_contender(trend.points[step.earlier].paths, folder, "the earlier point", options);
    const Contender newest =
        load_contender(trend.points[trend.known.back()].paths, folder, "the newest point", options);
    why = why_not(earlier, newest, metric, options);
  } catch (const Error& error) {
    why = error.problems().front().what;
  }
  if (!why) return;
  step.verdict = TrendVerdict::not_comparable;
  step.why = *why;
}

}  // namespace

WorkJudge judge_by_audit(const std::filesystem::path& folder, const AuditOptions& options) {
  return [folder, options](const IndexedFile& earlier, const IndexedFile& later) -> std::optional<std::string> {
    try {
      const Contender a = load_contender({earlier.path}, folder, "", options),
                      b = load_contender({later.path}, folder, "", options);
      for (const Finding& finding : audit_pair(a, b, options))
        if (forbids(finding) && finding.code != "same_measurement") return finding.sentence;
    } catch (const Error& error) {
      return error.problems().front().what;
    }
    return std::nullopt;
  };
}

void audit_trends(std::vector<Trend>& trends, const std::filesystem::path& folder, const Metric& metric,
                  const AuditOptions& options) {
  parallel_for(trends.size(), [&](size_t i) {
    Trend& trend = trends[i];
    if (!trend.previous) return;
    audit_step(*trend.previous, trend, folder, metric, options);
    if (!trend.best) return;
    if (trend.best->earlier != trend.previous->earlier)
      audit_step(*trend.best, trend, folder, metric, options);
    else
      trend.best->verdict = trend.previous->verdict, trend.best->why = trend.previous->why;
  });
}

}  // namespace tprimat::results

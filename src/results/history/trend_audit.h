#pragma once

#include <filesystem>

#include "compare/audit.h"
#include "history/trend.h"

namespace tprimat::results {

// Runs the audit of `tprimat compare` on two files of the folder.
WorkJudge judge_by_audit(const std::filesystem::path& folder, const AuditOptions& options);

// Audits the newest point of each series against the earlier points that it is compared with. Where the audit finds an
// error, or the metric means something else on each side, the step has a reason instead of a verdict.
void audit_trends(std::vector<Trend>& trends, const std::filesystem::path& folder, const Metric& metric,
                  const AuditOptions& options);

}  // namespace tprimat::results

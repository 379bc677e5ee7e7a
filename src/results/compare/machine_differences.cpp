#include "compare/machine_differences.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>

#include "text/format.h"

namespace tprimat::results {
namespace {

constexpr size_t k_max_shown = 6;

using FindingsByCode = std::map<std::string, const MachineFinding*>;

// Nothing where no run of the side was examined.
std::optional<FindingsByCode> findings_of(const Contender& side) {
  std::optional<FindingsByCode> found;
  for (const LoadedRun& run : side.runs) {
    if (!run.result.doctor) continue;
    if (!found) found.emplace();
    for (const MachineFinding& finding : run.result.doctor->findings)
      if (finding.code && finding.severity >= MachineSeverity::warning) found->emplace(*finding.code, &finding);
  }
  return found;
}

std::string shown(const MachineFinding& finding) { return printable(finding.area + ": " + finding.what); }

void add_missing_of(const FindingsByCode& side, const FindingsByCode& other, bool is_reference, Evidences& evidence) {
  constexpr const char* k_none = "no such finding";
  for (const auto& [code, finding] : side) {
    if (other.contains(code) || evidence.size() >= k_max_shown) continue;
    if (is_reference)
      evidence.push_back({"", shown(*finding), k_none});
    else
      evidence.push_back({"", k_none, shown(*finding)});
  }
}

}  // namespace

Shown check_machine_findings(const Sides& sides) {
  const auto reference = findings_of(sides.reference), subject = findings_of(sides.subject);
  if (!reference || !subject) return std::nullopt;
  Evidences evidence;
  add_missing_of(*reference, *subject, true, evidence);
  add_missing_of(*subject, *reference, false, evidence);
  return show(std::move(evidence));
}

}  // namespace tprimat::results

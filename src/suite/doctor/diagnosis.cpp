#include "doctor/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "doctor/checks.h"
#include "text/enum_names.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

std::string format_count(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace

size_t MachineDiagnosis::count(MachineSeverity severity) const {
  return static_cast<size_t>(std::count_if(
      findings.begin(), findings.end(), [&](const MachineFinding& finding) { return finding.severity == severity; }));
}

MachineSeverity MachineDiagnosis::worst() const {
  MachineSeverity worst = MachineSeverity::ok;
  for (const MachineFinding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

MachineDiagnosis diagnose(const DoctorFacts& facts) {
  MachineDiagnosis diagnosis;
  for (const Check check : doctor_checks())
    for (MachineFinding& finding : check(facts)) diagnosis.findings.push_back(std::move(finding));
  auto& all = diagnosis.findings;
  for (auto first = all.begin(); first != all.end();) {  // areas are already grouped
    const auto last =
        std::find_if(first, all.end(), [&](const MachineFinding& each) { return each.area != first->area; });
    std::stable_sort(first, last,
                     [](const MachineFinding& a, const MachineFinding& b) { return a.severity > b.severity; });
    first = last;
  }
  return diagnosis;
}

std::string summarise(const MachineDiagnosis& diagnosis) {
  const size_t broken = diagnosis.count(MachineSeverity::broken), missing = diagnosis.count(MachineSeverity::missing);
  const size_t warnings = diagnosis.count(MachineSeverity::warning), notes = diagnosis.count(MachineSeverity::note);
  std::string text;
  if (broken > 0)
    text = fmt::format("not fit to measure: {} broken", broken);
  else if (missing > 0)
    text = fmt::format("not ready: {} missing", missing);
  else
    text = "fit to measure";
  if (broken > 0 && missing > 0) text += fmt::format(", {} missing", missing);
  if (warnings > 0) text += ", with " + format_count(warnings, "warning", "warnings");
  if (notes > 0) text += (warnings > 0 ? " and " : ", with ") + format_count(notes, "note", "notes");
  return text;
}

std::string render_diagnosis(const MachineDiagnosis& diagnosis, bool brief) {
  TextTable table;
  std::string area;
  for (const MachineFinding& finding : diagnosis.findings) {
    if (brief && finding.severity == MachineSeverity::ok) continue;
    table.rows.push_back(
        {finding.area == area ? "" : finding.area, std::string(enum_name(finding.severity)), finding.what});
    if (!finding.remedy.empty()) table.rows.push_back({"", "", "-> " + finding.remedy});
    area = finding.area;
  }
  return summarise(diagnosis) + "\n" + (table.rows.empty() ? "" : "\n" + render_text(table));
}

document::Diagnosis document::describe_diagnosis(const MachineDiagnosis& diagnosis, const DoctorFacts& facts) {
  Diagnosis described{summarise(diagnosis), diagnosis.worst(), facts.platform(), {}, diagnosis.findings};
  for (const auto& [severity, name] : EnumNames<MachineSeverity>::values)
    described.counts[severity] = static_cast<int64_t>(diagnosis.count(severity));
  return described;
}

ExitStatus exit_status_of(const MachineDiagnosis& diagnosis) {
  if (diagnosis.count(MachineSeverity::missing) > 0) return ExitStatus::missing_component;
  return diagnosis.count(MachineSeverity::broken) > 0 ? ExitStatus::work_failed : ExitStatus::done;
}

}  // namespace tprimat::suite

#include "result/machine_finding.h"

#include <fmt/format.h>

#include <algorithm>

namespace tprimat {
namespace {

constexpr size_t k_max_findings = 32;
constexpr size_t k_max_bytes = 300;  // of a sentence, which may hold the names of processes

// At most k_max_bytes, and no part of a character of several bytes.
std::string shorten(const std::string& text) {
  if (text.size() <= k_max_bytes) return text;
  size_t end = k_max_bytes - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

DoctorReport make_doctor_report(const std::vector<MachineFinding>& findings) {
  DoctorReport report;
  for (const MachineFinding& finding : findings)
    if (finding.severity >= MachineSeverity::warning)
      report.findings.push_back(
          {finding.severity, shorten(finding.area), shorten(finding.what), shorten(finding.remedy), finding.code});
    else
      ++report.passed;
  std::ranges::stable_sort(report.findings, std::ranges::greater(), &MachineFinding::severity);
  if (report.findings.size() <= k_max_findings) return report;
  report.left_out = std::ssize(report.findings) - static_cast<int64_t>(k_max_findings);
  report.findings.resize(k_max_findings);
  return report;
}

std::string describe(const MachineFinding& finding) {
  return fmt::format("{}: {}{}{}", finding.area, finding.what, finding.remedy.empty() ? "" : " -> ", finding.remedy);
}

}  // namespace tprimat

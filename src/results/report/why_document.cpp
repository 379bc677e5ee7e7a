#include "report/why_document.h"

#include "report/why_report.h"
#include "text/json_fields.h"

namespace tprimat::results {

document::WhyReport document::describe_why(const Ledger& ledger) {
  WhyReport report;
  static_cast<Ledger&>(report) = ledger;
  report.sentence = describe_gap(ledger);
  report.remainder = describe_remainder(ledger);
  return report;
}

Json why_to_json(const Ledger& ledger, const std::optional<WhatIfReport>& what_if) {
  document::WhyReport report = document::describe_why(ledger);
  report.what_if = what_if;
  return to_json(report);
}

Json pipeline_to_json(const PipelineReport& pipeline, const std::optional<WhatIfReport>& what_if) {
  document::PipelineDocument report;
  static_cast<PipelineReport&>(report) = pipeline;
  report.what_if = what_if;
  return to_json(report);
}

}  // namespace tprimat::results

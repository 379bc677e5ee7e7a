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

Json why_to_json(const Ledger& ledger) { return to_json(document::describe_why(ledger)); }

}  // namespace tprimat::results

#pragma once

#include <string>

#include "trace/recorded_totals.h"
#include "why/ledger.h"

namespace tprimat::results {

// A report of a whole recording, which marks no steps.
struct TotalsInput {
  std::string label, file;
  logs::RecordedTotals totals;
};

// As make_ledger(), for reports that state sums alone: computation by class of kernel, exposed communication, exposed
// copies, idle time. Seconds are of the whole recordings; one figure each has no interval. Throws Error where the
// reports state no such parts.
Ledger make_totals_ledger(const TotalsInput& a, const TotalsInput& b);

}  // namespace tprimat::results

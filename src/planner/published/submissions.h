#pragma once

#include <optional>
#include <string>
#include <vector>

#include "published/table.h"

namespace tprimat::planner {

// Rows of MLPerf Training. Their tables name a benchmark in place of a model, and step times and throughputs as
// medians; what other tables say in columns of its own stands in the configuration file's name.

// Of a header without 'model'.
bool lists_submissions(const std::vector<std::string>& columns);

// Fills the columns of other tables from those of a submission: model, framework ("MLPerf v5.1 ..."), step_time_s,
// precision, mbs. What the row has stays.
void name_submission_cells(PublishedRow& row);

// "v5.1", of a row whose framework begins with "MLPerf v5.1"; nothing for others.
std::optional<std::string> submission_round(const PublishedRow& row);

}  // namespace tprimat::planner

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate.h"
#include "planner/interval.h"
#include "planner/plan_errors.h"
#include "planner/swept_family.h"
#include "published/table.h"
#include "text/fields.h"

namespace tprimat::planner {

struct PlannedTable {
  std::string table;
  std::vector<PlanErrors> errors;
  std::vector<SweptFamily> sweeps;
  std::map<std::string, int64_t> not_predicted;  // reason -> rows
  std::vector<PlannedRow> rows;

  static constexpr auto fields() {
    using P = PlannedTable;
    return field_list(field("table", &P::table, "file name without extension"),
                      field("errors", &P::errors, "quantiles of the errors"),
                      field("sweeps", &P::sweeps, "ranking quality for layouts and settings of one model"),
                      field("not_predicted", &P::not_predicted, "rows without a prediction, by reason"),
                      field("rows", &P::rows, "all rows"));
  }
};

// Intervals are the built-in ones.
PlannedTable plan_table(const PublishedTable& table, const ParameterSet& parameters);

// Errors of the rows of all tables together, also by vendor, program and table.
std::vector<PlanErrors> join_errors(const std::vector<PlannedTable>& tables);

// All tables in one object: each, together, and how well sweeps are ranked.
struct ValidationReport {
  std::vector<PlannedTable> tables;
  std::vector<PlanErrors> together;
  RankingQuality ranking;
};
ValidationReport make_validation_report(std::vector<PlannedTable> tables);
std::string render_plan_validation(const ValidationReport& report, bool every_row);

// What a table's rows measured, as far as they can be predicted and are not weak.
std::vector<Observation> observations_of(const PublishedTable& table);

}  // namespace tprimat::planner

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planner/plan_validation.h"
#include "planner/published_workload.h"

namespace tprimat::planner {

// A row that is read once and predicted several times.
struct ReadRow {
  const PublishedRow* row = nullptr;  // outlives it
  PublishedWorkload read;
  bool is_described() const;  // shape, program and layout are known
  bool is_measured() const;   // its step time is known, and can be fitted
  bool is_fitted() const;     // its step time or memory
  Observation observation() const;
};
std::vector<ReadRow> read_rows(const PublishedTable& table);

// Measured rows by what they are of.
std::vector<MeasuredGroup> count_measured(const std::vector<const ReadRow*>& rows);

PlannedRow plan_row(const ReadRow& row, const ParameterSet& parameters);
void set_interval(PlannedRow& planned, const PredictionInterval& interval);

PlannedTable gather_planned(const std::string& table, std::vector<PlannedRow> rows);

}  // namespace tprimat::planner

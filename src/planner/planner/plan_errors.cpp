#include "planner/plan_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::planner {

std::optional<bool> PlannedRow::is_covered() const {
  if (!error || !low || !high) return std::nullopt;
  const double measured = 1 / (1 + *error);  // over predicted
  return *low <= measured && measured <= *high;
}

PlanErrors errors_of(std::string of, std::vector<double> errors) {
  PlanErrors result;
  result.of = std::move(of);
  result.rows = static_cast<int64_t>(errors.size());
  if (errors.empty()) return result;
  result.bias = quantile(errors, 0.5);
  for (double& each : errors) each = std::fabs(each);
  result.median = quantile(errors, 0.5);
  result.p90 = quantile(errors, 0.9);
  result.worst = std::ranges::max(errors);
  return result;
}

std::string signed_percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:+.1f} %", 100 * *fraction) : "";
}

std::vector<std::string> error_cells(const PlanErrors& errors) {
  return {errors.of,
          std::to_string(errors.rows),
          format_percent(errors.median),
          format_percent(errors.p90),
          format_percent(errors.worst),
          signed_percent(errors.bias)};
}

void ErrorGroups::add_step(const PlannedRow& row, const std::string& group) {
  if (!row.error) return;
  Group& into = groups_[group];
  into.errors.push_back(*row.error);
  if (const auto covered = row.is_covered()) ++into.with_interval, into.covered += *covered ? 1 : 0;
}

void ErrorGroups::add_under(const PlannedRow& row, const std::string& group) {
  if (!row.weak) add_step(row, group);
}

void ErrorGroups::add(const PlannedRow& row) {
  if (row.weak) return add_step(row, "weak");
  if (row.memory_error) groups_["memory"].errors.push_back(*row.memory_error);
  if (row.memory_error && !row.kind.empty()) groups_["memory, " + row.kind].errors.push_back(*row.memory_error);
  if (row.minutes_error) groups_["time to train"].errors.push_back(*row.minutes_error);
  if (row.activation_error) groups_["activations"].errors.push_back(*row.activation_error);
  for (const std::string& group :
       {std::string("all"), "kind " + row.kind, "gpu " + row.gpu, "precision " + row.precision})
    add_step(row, group);
}

std::vector<PlanErrors> ErrorGroups::summarise() const {
  std::vector<PlanErrors> all;
  for (const auto& [name, group] : groups_) {
    PlanErrors& errors = all.emplace_back(errors_of(name, group.errors));
    if (group.with_interval > 0)
      errors.covered = static_cast<double>(group.covered) / static_cast<double>(group.with_interval);
  }
  return all;
}

}  // namespace tprimat::planner

#include "planner/swept_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "stats/descriptive.h"

namespace tprimat::planner {
namespace {

using SweptRows = std::vector<const PlannedRow*>;

constexpr size_t k_min_rows = 4;
constexpr double k_like_size = 1.1;

SweptFamily summarise_sweep(const SweptRows& rows) {
  const auto by_size = [](const PlannedRow* a, const PlannedRow* b) { return a->parameters < b->parameters; };
  const auto [small, large] = std::minmax_element(rows.begin(), rows.end(), by_size);
  const std::string models =
      (*small)->model == (*large)->model ? (*small)->model : (*small)->model + " to " + (*large)->model;
  std::vector<double> predicted, published;
  for (const PlannedRow* row : rows) predicted.push_back(*row->predicted), published.push_back(*row->published);
  SweptFamily family;
  family.of = fmt::format("{} on {} {}", models, rows.front()->gpus, rows.front()->gpu);
  family.rows = static_cast<int64_t>(rows.size());
  family.spearman = spearman(predicted, published);
  const auto chosen = std::max_element(predicted.begin(), predicted.end()) - predicted.begin();
  family.best_behind =
      *std::max_element(published.begin(), published.end()) / published[static_cast<size_t>(chosen)] - 1;
  return family;
}

// Cuts rows of one GPU and number of GPUs where sizes leap.
std::vector<SweptRows> split_by_size(SweptRows rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const PlannedRow* a, const PlannedRow* b) { return a->parameters < b->parameters; });
  std::vector<SweptRows> groups;
  for (const PlannedRow* row : rows) {
    if (groups.empty() || row->parameters > k_like_size * groups.back().back()->parameters) groups.emplace_back();
    groups.back().push_back(row);
  }
  return groups;
}

int64_t first_line(const SweptRows& rows) {
  int64_t first = rows.front()->line;
  for (const PlannedRow* row : rows) first = std::min(first, row->line);
  return first;
}

}  // namespace

std::vector<SweptFamily> find_sweeps(const std::vector<PlannedRow>& rows) {
  std::map<std::pair<std::string, int64_t>, SweptRows> by_machine;
  for (const PlannedRow& row : rows)
    if (row.predicted && row.published) by_machine[{row.gpu, row.gpus}].push_back(&row);
  std::map<int64_t, SweptFamily> by_line;
  for (const auto& [machine, together] : by_machine)
    for (const SweptRows& group : split_by_size(together))
      if (group.size() >= k_min_rows) by_line[first_line(group)] = summarise_sweep(group);
  std::vector<SweptFamily> sweeps;
  for (auto& [line, family] : by_line) sweeps.push_back(std::move(family));
  return sweeps;
}

}  // namespace tprimat::planner

#include "planner/swept_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "stats/descriptive.h"

namespace tprimat::planner {
namespace {

using SweptRows = std::vector<const PlannedRow*>;

constexpr size_t k_min_settings = 4;
constexpr double k_like_size = 1.1;

// Rows of one layout and the same settings.
struct Setting {
  std::vector<double> predicted, published;
};

std::vector<Setting> gather_settings(const SweptRows& rows) {
  std::map<std::tuple<double, std::string, std::string, std::vector<std::string>>, Setting> settings;
  for (const PlannedRow* row : rows) {
    Setting& into = settings[{row->parameters, row->layout, row->precision, row->settings}];
    into.predicted.push_back(*row->predicted), into.published.push_back(*row->published);
  }
  std::vector<Setting> all;
  for (auto& [key, setting] : settings) all.push_back(std::move(setting));
  return all;
}

SweptFamily summarise_sweep(const SweptRows& rows, const std::vector<Setting>& settings) {
  const auto [small, large] = std::ranges::minmax_element(rows, {}, &PlannedRow::parameters);
  const std::string models =
      (*small)->model == (*large)->model ? (*small)->model : (*small)->model + " to " + (*large)->model;
  std::vector<double> predicted, published;
  for (const Setting& each : settings)
    predicted.push_back(median(each.predicted)), published.push_back(median(each.published));
  SweptFamily family;
  family.kind = rows.front()->kind;
  family.of = fmt::format("{} on {} {}", models, rows.front()->gpus, rows.front()->gpu);
  family.rows = static_cast<int64_t>(settings.size());
  family.spearman = spearman(predicted, published);
  const auto chosen = std::ranges::max_element(predicted) - predicted.begin();
  family.best_behind = std::ranges::max(published) / published[static_cast<size_t>(chosen)] - 1;
  return family;
}

// Cuts rows of one GPU and number of GPUs where sizes leap.
std::vector<SweptRows> split_by_size(SweptRows rows) {
  std::ranges::stable_sort(rows, {}, &PlannedRow::parameters);
  std::vector<SweptRows> groups;
  for (const PlannedRow* row : rows) {
    if (groups.empty() || row->parameters > k_like_size * groups.back().back()->parameters) groups.emplace_back();
    groups.back().push_back(row);
  }
  return groups;
}

}  // namespace

std::vector<SweptFamily> find_sweeps(const std::vector<PlannedRow>& rows) {
  std::map<std::tuple<std::string, int64_t, std::string>, SweptRows> by_machine;
  for (const PlannedRow& row : rows)
    if (row.predicted && row.published && !row.weak) by_machine[{row.gpu, row.gpus, row.kind}].push_back(&row);
  std::map<int64_t, SweptFamily> by_line;
  for (const auto& [machine, together] : by_machine)
    for (const SweptRows& group : split_by_size(together)) {
      const std::vector<Setting> settings = gather_settings(group);
      if (settings.size() < k_min_settings) continue;
      by_line[(*std::ranges::min_element(group, {}, &PlannedRow::line))->line] = summarise_sweep(group, settings);
    }
  std::vector<SweptFamily> sweeps;
  for (auto& [line, family] : by_line) sweeps.push_back(std::move(family));
  return sweeps;
}

RankingQuality judge_ranking(const std::vector<SweptFamily>& sweeps) {
  RankingQuality quality;
  quality.sweeps = static_cast<int64_t>(sweeps.size());
  std::vector<double> correlations;
  std::map<std::string, std::vector<double>> by_kind;
  for (const SweptFamily& sweep : sweeps) {
    correlations.push_back(sweep.spearman);
    by_kind[sweep.kind].push_back(sweep.spearman);
  }
  if (!correlations.empty()) quality.median_spearman = median(correlations);
  for (const auto& [kind, each] : by_kind) quality.by_kind[kind] = median(each);
  return quality;
}

}  // namespace tprimat::planner

#include <cmath>

#include "result/summary.h"
#include "stats/descriptive.h"

namespace tprimat {
namespace {

using Series = std::optional<std::vector<double>>;

std::optional<double> steady_mean(const RunResult& result, const Series& values, const std::set<int64_t>& labelled) {
  if (!values) return std::nullopt;
  std::vector<double> steady;
  for (size_t i = 0; i < values->size(); ++i)
    if (static_cast<int64_t>(i) >= result.warmup.steps_excluded && std::isfinite((*values)[i]) &&
        labelled.count(step_number(result, i)) == 0)
      steady.push_back((*values)[i]);
  return steady.empty() ? std::nullopt : std::optional(mean(steady));
}

}  // namespace

void average_experts(RunResult& result) {
  if (!result.experts) return;
  ExpertFigures& experts = *result.experts;
  const std::set<int64_t> labelled = labelled_steps(result);
  for (const auto& [mean_of, series] : {std::pair{&ExpertFigures::load, &ExpertFigures::load_values},
                                        {&ExpertFigures::dropped_share, &ExpertFigures::dropped_values},
                                        {&ExpertFigures::aux_loss, &ExpertFigures::aux_loss_values},
                                        {&ExpertFigures::z_loss, &ExpertFigures::z_loss_values}})
    if (const auto value = steady_mean(result, experts.*series, labelled)) experts.*mean_of = value;
}

}  // namespace tprimat

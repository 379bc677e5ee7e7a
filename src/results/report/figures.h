#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "claim/neighbours.h"
#include "compare/comparison.h"
#include "result/metric_text.h"
#include "result/metrics.h"

namespace tprimat::results {

// "13 425 [13 380 to 13 470]"; "-" when not known.
std::string format_estimate(const Metric& metric, const std::optional<Estimate>& estimate);

// Metrics that at least one participant has, in the registry's order.
std::vector<const Metric*> present_metrics(const ModelGroup& group);

// A basic fact of a run for readers.
struct RunFact {
  std::string_view name;  // "platform", "GBS"
  std::optional<std::string> value;
  std::string text() const { return value.value_or("not known"); }
};

// The same list, in the same order, serves every format.
std::vector<RunFact> list_facts(const Contender& contender);

// Of a training that ends at a target quality; empty for others.
std::vector<RunFact> list_target_facts(const Contender& contender);

// Of a mixture of experts; empty for others.
std::vector<RunFact> list_expert_facts(const Contender& contender);

// How its mean rate stands among published runs of the kind; nothing where there are none.
std::optional<planner::PublishedStanding> find_standing(const Contender& contender);

// "B / A"
std::string pair_name(const ModelGroup& group, const Pair& pair);

// "28 pairs: 20 decided, 2 the same, 6 inconclusive, 0 not comparable"
std::string count_verdicts(const ModelGroup& group);

// Places of the lowest and the highest value of a part of a series, in their order: they are kept when a series is
// thinned, so that no spike is lost. One place for a single value, none where no value is below `limit` in size.
std::vector<size_t> find_extremes(std::span<const double> values, size_t begin, size_t end, double limit);

// Whether the verdict and the ratio may be shown.
bool shows_verdict(const Comparison& comparison, const Pair& pair);

}  // namespace tprimat::results

#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "probe/model_products.h"
#include "result/gpu_probe_report.h"

namespace tprimat::engine {

// Seconds that count, and how they were measured.
template <class M>
using TimedProducts = std::pair<double, M>;

// `time` measures the products of a std::vector<ProductShape>, one after the other.
template <class M, class Time>
void add_grouped_rates(std::vector<GroupedRate<M>>& rates, const GroupedShape& shape, const Time& time) {
  const TimedProducts<M> plain = time(std::vector<ProductShape>{shape.plain()});
  const double plain_rate = shape.flops() / plain.first;
  for (const ExpertLoad load : {ExpertLoad::even, ExpertLoad::uneven}) {
    const TimedProducts<M> grouped = time(shape.products(load));
    const double rate = shape.flops() / grouped.first;
    rates.push_back({shape.name, shape.pass, load, shape.experts, shape.tokens,
                     std::ranges::max(expert_tokens(load, shape.experts, shape.tokens)), shape.inputs, shape.outputs,
                     rate, plain_rate, rate / plain_rate, grouped.second});
  }
}

// Seconds of a step's products of routed experts, by the rates of even loads. Rates in the order of the groups, two
// each.
template <class M>
double seconds_of_groups(const std::vector<ModelGroup>& groups, const std::vector<GroupedRate<M>>& rates) {
  double seconds = 0;
  for (size_t i = 0; i < groups.size(); ++i) seconds += groups[i].step_flops / rates[2 * i].flops_per_second;
  return seconds;
}

}  // namespace tprimat::engine

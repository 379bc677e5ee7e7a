#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "probe/model_products.h"
#include "text/fields.h"

namespace tprimat::engine {

// What the products of several experts, one after the other, achieve beside one product of all their tokens. M:
// Measured, or a GPU's DeviceMeasured.
template <class M>
struct GroupedRate {
  std::string name;
  ProductPass pass = ProductPass::forward;
  ExpertLoad load = ExpertLoad::even;
  int64_t experts = 0, tokens = 0, fullest = 0, inputs = 0, outputs = 0;
  double flops_per_second = 0;
  double plain_flops_per_second = 0;
  double share_of_plain = 0;
  M measured;

  static constexpr auto fields() {
    using G = GroupedRate;
    return field_list(
        field("name", &G::name, "name of the products"),
        field("pass", &G::pass, "forward, or the gradient of the input (dgrad) or of the weights (wgrad)"),
        field("load", &G::load,
              "even: each expert has the same number of tokens; uneven: it rises from one to the next"),
        field("experts", &G::experts, "experts measured together"),
        field("tokens", &G::tokens, "tokens of an expert, on average"),
        field("fullest", &G::fullest, "tokens of the fullest expert"),
        field("inputs", &G::inputs, "inputs of an expert's layer"),
        field("outputs", &G::outputs, "outputs of an expert's layer"),
        field("flops_per_second", &G::flops_per_second, "2·tokens·inputs·outputs of all experts / time"),
        field("plain_flops_per_second", &G::plain_flops_per_second, "the same for one product of all these tokens"),
        field("share_of_plain", &G::share_of_plain, "flops_per_second / plain_flops_per_second"),
        field("measured", &G::measured, "the measurement"));
  }
};

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

#include "planner/refine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "text/format.h"

namespace tprimat::planner {
namespace {

std::string_view scope_of(const PlanParameter& each) {
  const size_t at = each.name.find('@');
  return at == std::string::npos ? std::string_view() : std::string_view(each.name).substr(at + 1);
}

std::string_view key_of(const PlanParameter& each) {
  return std::string_view(each.name).substr(0, each.name.find('@'));
}

// Less where a fit has found the value before.
double spread_left(const PlanParameter& each) {
  constexpr double k_found = 0.25;
  return each.value != each.prior ? k_found * each.spread : each.spread;
}

// What the machine of an observation may have otherwise than others of its part: what is fitted by architecture, and
// its links; of a processor all that our own trainer's step consists of, but the scale of the program.
bool is_of_machine(const PlanParameter& each, const Observation& seen) {
  constexpr std::array<std::string_view, 4> k_links = {"link", "network", "token_link", "fused_token_link"};
  if (seen.workload.family->own_trainer) return scope_of(each) == seen.workload.family->id && key_of(each) != "scale";
  if (std::ranges::find(k_links, std::string_view(each.name)) != k_links.end()) return true;
  return !scope_of(each).empty() && scope_of(each) == seen.machine.architecture;
}

double value_of(const ParameterSet& start, const PlanParameter& shared, const Observation& seen) {
  if (seen.workload.family->own_trainer) return shared.value;
  if (shared.name == "network") return start.scoped("network", seen.workload.family->id, shared.value);
  return reached_share(start, seen.machine, key_of(shared)).value_or(shared.value);
}

// The machine's own copies, where it has none yet.
void add_copies(ParameterSet& set, const ParameterSet& start, const Observation& seen) {
  constexpr double k_machines_differ = 0.1;  // of one part, relative
  for (const PlanParameter& shared : start.all()) {
    if (!is_of_machine(shared, seen)) continue;
    PlanParameter own = shared;
    own.name = fmt::format("{}@{}", key_of(shared), machine_scope(seen.machine));
    own.value = own.prior = value_of(start, shared, seen);
    own.spread = std::max(k_machines_differ, spread_left(shared));
    own.low = std::min(own.low, own.value / 2), own.high = std::max(own.high, own.value);
    own.meaning.clear();
    set.add(own);
  }
}

// Held at its value, but for what the scope lets move. What other machines share never does: the copies do.
PlanParameter believe(PlanParameter each, const std::vector<Observation>& observations, FitScope scope) {
  const bool is_own = scope_of(each).starts_with(k_machine_scope);
  const bool is_shared =
      std::ranges::any_of(observations, [&](const Observation& seen) { return is_of_machine(each, seen); });
  const bool moves = is_own || (scope == FitScope::all && !scope_of(each).empty() && !is_shared);
  each.spread = moves ? spread_left(each) : 0;
  each.prior = each.value;
  return each;
}

std::vector<MovedParameter> list_moved(const ParameterSet& before, const Fit& fit) {
  constexpr double k_felt = 1e-3;  // posterior standard deviations
  std::vector<MovedParameter> moved;
  for (const auto& [name, deviation] : fit.deviations) {
    if (!(deviation > 0)) continue;
    const double from = before.find(name)->value, to = fit.parameters.find(name)->value;
    const double deviations = std::log(to / from) / deviation;
    if (std::fabs(deviations) > k_felt) moved.push_back({name, from, to, deviation, deviations});
  }
  std::ranges::stable_sort(moved, [](const MovedParameter& a, const MovedParameter& b) {
    return std::fabs(a.deviations) > std::fabs(b.deviations);
  });
  return moved;
}

}  // namespace

Refinement refine(const ParameterSet& start, const std::vector<Observation>& observations, FitScope scope) {
  constexpr double k_noise = 0.03;  // of a result about the model that knows its machine, relative
  ParameterSet before = start;
  for (const Observation& each : observations) {
    add_copies(before, start, each);
    if (scope == FitScope::all) before.add_factors(each.workload, each.machine);
  }
  std::vector<PlanParameter> believed;
  for (const PlanParameter& each : before.all()) believed.push_back(believe(each, observations, scope));
  const Fit fit = fit_parameters(before, ParameterSet(std::move(believed)), observations, k_noise);
  Refinement refined{start, list_moved(before, fit)};
  for (const auto& [name, deviation] : fit.deviations) {
    PlanParameter each = *before.find(name);
    each.value = fit.parameters.find(name)->value;
    refined.parameters.add(each);
    (void)refined.parameters.replace(each);
  }
  return refined;
}

std::string render_moved(const std::vector<MovedParameter>& moved) {
  constexpr double k_shown = 0.05;
  if (moved.empty()) return "no parameter moved\n";
  TextTable table{{"parameter", "before", "after", "change", "uncertainty", "moved by"}, {}, {1, 2, 3, 4, 5}};
  int64_t left_out = 0;
  for (const MovedParameter& each : moved) {
    if (std::fabs(each.deviations) < k_shown) {
      ++left_out;
      continue;
    }
    table.rows.push_back({each.name, format_significant(each.before, 4), format_significant(each.after, 4),
                          fmt::format("{:+.1f} %", 100 * (each.after / each.before - 1)),
                          format_percent(each.deviation), fmt::format("{:+.1f} sd", each.deviations)});
  }
  std::string text = render_text(table);
  if (left_out > 0) text += fmt::format("{} others moved by less than {} sd\n", left_out, k_shown);
  return text + "sd: posterior standard deviations of the parameter\n";
}

}  // namespace tprimat::planner

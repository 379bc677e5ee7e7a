#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "claim/claim_case.h"
#include "planner/interval.h"
#include "planner/plan_report.h"
#include "planner/search.h"

namespace tprimat::planner {
namespace {

constexpr double k_tenth = 1.2816;             // of a normal distribution, in standard deviations
constexpr double k_unstated_spread = 0.1;      // of settings that no claim states
constexpr double k_fewer_layers_spread = 0.4;  // a proxy's ends and launches weigh more than in what was fitted
// Where no interval is known: by whether measurements of the architecture stand behind the figure.
constexpr double k_measured_spread = 0.12, k_sparse_spread = 0.2, k_unknown_spread = 0.4;
// Published layouts are seldom the planner's best: trainings in the best one may be slower.
constexpr double k_best_layout = 0.92, k_best_spread = 0.12, k_best_sparse_spread = 0.3;

RateBelief belief_of(double rate, const PredictionInterval& interval, double otherwise) {
  if (!interval.is_known()) return {rate, otherwise};
  const double spread = std::log(interval.high / interval.low) / (2 * k_tenth);
  return {rate / std::sqrt(interval.low * interval.high), std::hypot(k_unstated_spread, spread)};
}

double spread_without(const Workload& workload, const Machine& machine, const ParameterSet& parameters) {
  if (!rests_on_measurements(parameters, machine, *workload.family)) return k_unknown_spread;
  return model_kind(workload) == ModelKind::dense ? k_measured_spread : k_sparse_spread;
}

// Both precisions of the same workload and machine.
std::optional<double> fp8_speed(const Workload& stated, const Machine& machine, const ParameterSet& parameters) {
  if (stated.precision != PlanPrecision::bf16 || machine.peak_8 <= 0) return std::nullopt;
  Workload narrow = stated;
  narrow.precision = PlanPrecision::fp8;
  const auto rate = [&](const Workload& workload) {
    return time_step(workload, machine, resolve_rates(parameters, machine, workload))
        .tokens_per_second_per_gpu(workload);
  };
  const double speed = rate(narrow) / rate(stated);
  return std::isfinite(speed) && speed > 1 ? std::optional(speed) : std::nullopt;
}

std::string format_workload(const Workload& workload) {
  PlanRequest request;
  request.shape = workload.shape;
  PlanLine line;
  static_cast<Layout&>(line) = workload.layout;
  const std::string text = format_layout(line);
  return fmt::format("{}, GBS {}", text, workload.global_batch);
}

PlannedRate time_stated(const ReadFacts& read, const ParameterSet& parameters) {
  Workload workload = read.planned.workload;
  workload.shape = read.facts.shape;
  const Rates rates = resolve_rates(parameters, read.planned.machine, workload);
  const double rate = time_step(workload, read.planned.machine, rates).tokens_per_second_per_gpu(workload);
  const PredictionInterval interval = prediction_interval(workload, read.planned.machine, parameters);
  PlannedRate planned;
  planned.layout = format_workload(workload);
  planned.basis = interval.basis;
  planned.rows = interval.rows;
  planned.fp8_speed = fp8_speed(workload, read.planned.machine, parameters);
  if (std::isfinite(rate) && rate > 0)
    planned.belief = belief_of(rate, interval, spread_without(workload, read.planned.machine, parameters));
  else
    planned.missing = "no step time for this layout";
  return planned;
}

// A batch that keeps every layout legal that a person would try.
int64_t usual_batch(const RunFacts& facts) {
  constexpr int64_t k_usual = 512;
  return facts.global_batch > 0 ? facts.global_batch : std::max(k_usual, 4 * facts.gpus);
}

PlanRequest request_of(const RunFacts& facts) {
  PlanRequest request;
  request.shape = facts.shape;
  request.sequence_length = facts.sequence_length;
  request.global_batch = usual_batch(facts);
  request.gpus = facts.gpus;
  request.machine = facts.machine;
  request.family = facts.family != nullptr && !facts.family->own_trainer ? facts.family : find_family("megatron_core");
  request.precision = facts.precision;
  return request;
}

PlannedRate search_best(const RunFacts& facts, const ParameterSet& parameters) {
  const SearchOutcome outcome = search_layouts(request_of(facts), parameters, 1);
  PlannedRate planned;
  if (outcome.ranked.empty()) {
    planned.missing = outcome.legal > 0 ? "no layout fits into memory" : "no layout is legal";
    if (outcome.smallest) planned.smallest_bytes = outcome.smallest->memory.total();
    return planned;
  }
  const RankedLayout& best = outcome.ranked.front();
  const PredictionInterval interval = prediction_interval(best.workload, facts.machine, parameters);
  planned.layout = "best found: " + format_workload(best.workload);
  planned.basis = interval.basis;
  planned.rows = interval.rows;
  planned.fp8_speed = fp8_speed(best.workload, facts.machine, parameters);
  planned.belief = belief_of(best.time.tokens_per_second_per_gpu(best.workload) * k_best_layout, interval,
                             spread_without(best.workload, facts.machine, parameters));
  planned.belief->spread = std::hypot(planned.belief->spread, facts.is_sparse() ? k_best_sparse_spread : k_best_spread);
  return planned;
}

}  // namespace

PlannedRate plan_rate(const ReadFacts& read, const ParameterSet& parameters) {
  PlannedRate planned;
  if (planned.missing = unpredictable(read.facts.shape); !planned.missing.empty()) return planned;
  const bool complete = read.planned.missing.empty() || read.planned.missing == "no rate";
  if (complete)
    planned = time_stated(read, parameters);
  else if (read.facts.trains_adapters)
    planned.missing = read.planned.missing;
  else if (read.facts.gpus < 1)
    planned.missing = "no number of GPUs";
  else
    planned = search_best(read.facts, parameters);
  if (planned.belief && read.facts.has_fewer_layers)
    planned.belief->spread = std::hypot(planned.belief->spread, k_fewer_layers_spread);
  return planned;
}

}  // namespace tprimat::planner

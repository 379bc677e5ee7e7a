#include "compare/expert_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "compare/expert_facts.h"
#include "compare/forced_balance.h"
#include "compare/plausibility.h"
#include "result/active_count.h"
#include "result/summary.h"
#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

bool are_sparse(const RunResult& a, const RunResult& b) {
  return is_sparse(a).value_or(false) && is_sparse(b).value_or(false);
}

bool are_balanced(const RunResult& a, const RunResult& b) {
  return routing_of(a) == Routing::balanced && routing_of(b) == Routing::balanced;
}

std::string describe_model(const RunResult& run) {
  const auto& shape = run.model_info.shape;
  if (!is_sparse(run).value_or(false)) return "dense";
  if (!shape) return "a mixture of experts";
  return fmt::format("{} of {} experts per token", shape->experts->per_token, shape->experts->count);
}

std::string routing_word(const RunResult& run) {
  const auto routing = routing_of(run);
  return routing ? words(*routing) : "unknown";
}

std::string unless_zero(double value) { return value > 0 ? words(value) : "none"; }

// Of the layers that predict further tokens, by the shape of a side.
std::string describe_more_work(const RunResult& a, const RunResult& b) {
  const auto& shape = a.model_info.shape ? a.model_info.shape : b.model_info.shape;
  const int64_t length = a.training_config.sequence_length.value_or(0);
  if (!shape || length <= 0) return "";
  const auto work_with = [&](int64_t layers) {
    ModelSpec model = *shape;
    model.prediction_layers = layers > 0 ? std::optional(layers) : std::nullopt;
    return check_model(model, "").empty() ? flops_per_token(model, length, FlopFormula::causal) : 0;
  };
  const auto [less, more] = std::minmax({work_with(*prediction_layers_of(a)), work_with(*prediction_layers_of(b))});
  return less > 0 && more > less ? fmt::format("; {} more FLOPs per token", format_percent(more / less - 1)) : "";
}

// The first run of a side of which this holds, else its first: a fact that one repetition lacks is missing for the
// side.
template <class Condition>
const RunResult& find_run(const Contender& side, Condition holds) {
  for (const LoadedRun& run : side.runs)
    if (holds(run.result)) return run.result;
  return side.first();
}

bool has_shape(const RunResult& run) { return run.model_info.shape.has_value(); }
bool has_no_shape(const RunResult& run) { return !has_shape(run); }
bool hides_routing(const RunResult& run) { return !routing_of(run); }
bool hides_balancing(const RunResult& run) {
  const Balancing told = balancing_of(run);
  return !told.kind && !told.aux_loss && !told.z_loss;
}

// The count of a model without a shape is that of the active parameters of the other's shape.
bool counts_active(const RunResult& with_count, const RunResult& with_shape) {
  const auto& count = with_count.model_info.num_parameters;
  const auto& shape = with_shape.model_info.shape;
  return has_no_shape(with_count) && count && shape && is_active_count(static_cast<double>(*count), *shape);
}

Shown show_active_count(const RunResult& a, const RunResult& b) {
  if (!counts_active(a, b) && !counts_active(b, a)) return std::nullopt;
  const auto describe = [](const RunResult& run) { return format_count(static_cast<double>(*parameters_of(run))); };
  return Proof(Evidences{{"parameters", describe(a), describe(b)}});
}

// The mean over a side's runs; nothing where a run does not tell.
struct SideMean {
  double mean = 0, error = 0;  // standard error between runs
};
std::optional<SideMean> mean_of(const Contender& side, std::optional<double> (*figure)(const RunResult&)) {
  std::vector<double> values;
  for (const LoadedRun& run : side.runs) {
    const auto value = figure(run.result);
    if (!value || !std::isfinite(*value)) return std::nullopt;
    values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return SideMean{mean(values), stddev(values) / std::sqrt(static_cast<double>(values.size()))};
}

bool is_beyond_noise(const SideMean& a, const SideMean& b, double worth_telling) {
  constexpr double k_errors = 3;
  return std::fabs(a.mean - b.mean) > worth_telling + k_errors * std::hypot(a.error, b.error);
}

// One rank holds all experts of a layer: none waits for another.
bool has_whole_layers(const RunResult& run) { return run.parallelism_config.expert_model_parallel_size == 1; }

std::optional<double> rate_of(const RunResult& run) {
  const auto& rate = run.derived.tokens_per_second_per_gpu;
  return rate ? std::optional(rate->value) : std::nullopt;
}

// "; the side with the fuller expert is 12 % slower"
std::string describe_fuller_side(const Sides& sides, bool reference_is_fuller) {
  constexpr double k_same = 0.01;
  const auto x = mean_of(sides.reference, rate_of), y = mean_of(sides.subject, rate_of);
  if (!x || !y || !(x->mean > 0) || !(y->mean > 0)) return "";
  const double ratio = reference_is_fuller ? x->mean / y->mean : y->mean / x->mean;
  if (std::fabs(ratio - 1) <= k_same) return "; both sides are equally fast";
  return ratio < 1 ? fmt::format("; the side with the fuller expert is {} slower", format_percent(1 - ratio, 0))
                   : fmt::format("; yet the side with the fuller expert is {} faster", format_percent(ratio - 1, 0));
}

// Load and time of each steady step that has both and no label.
struct LoadedSteps {
  std::vector<double> loads, times;
};
LoadedSteps steps_with_load(const RunResult& run) {
  LoadedSteps steps;
  const auto& loads = run.experts ? run.experts->load_values : std::nullopt;
  if (!loads) return steps;
  const auto labelled = labelled_steps(run);
  const size_t count = std::min(loads->size(), run.step_times.size());
  for (auto i = static_cast<size_t>(std::max<int64_t>(0, run.warmup.steps_excluded)); i < count; ++i) {
    if (!std::isfinite((*loads)[i]) || !is_valid_step_time(run.step_times[i])) continue;
    if (labelled.contains(step_number(run, i))) continue;
    steps.loads.push_back((*loads)[i]), steps.times.push_back(run.step_times[i]);
  }
  return steps;
}

// Median time of the steps whose load lies in the lowest or the highest quarter.
double time_of_quarter(const LoadedSteps& steps, bool highest) {
  const double bound = quantile(steps.loads, highest ? 0.75 : 0.25);
  std::vector<double> times;
  for (size_t i = 0; i < steps.loads.size(); ++i)
    if (highest ? steps.loads[i] >= bound : steps.loads[i] <= bound) times.push_back(steps.times[i]);
  return median(times);
}

}  // namespace

Shown check_sparse_against_dense(const RunResult& a, const RunResult& b) {
  const auto x = is_sparse(a), y = is_sparse(b);
  if (!x || !y || *x == *y) return std::nullopt;
  return Proof(Evidences{{"", describe_model(a), describe_model(b)}});
}

Shown check_routing(const RunResult& a, const RunResult& b) {
  Shown proof = show_difference("", routing_of(a), routing_of(b));
  if (proof) proof->figures += "; " + describe_published_gain(a);
  return proof;
}

Shown check_routing_known(const Sides& sides) {
  const RunResult &a = find_run(sides.reference, hides_routing), &b = find_run(sides.subject, hides_routing);
  if (!are_sparse(a, b) || (routing_of(a) && routing_of(b))) return std::nullopt;
  if (!routing_of(a) && !routing_of(b)) return Proof("neither side states it; " + describe_published_gain(a));
  Proof proof(Evidences{{"", routing_word(a), routing_word(b)}});
  proof.figures += "; " + describe_published_gain(a);
  return proof;
}

Shown check_capacity(const RunResult& a, const RunResult& b) {
  const auto x = capacity_of(a), y = capacity_of(b);
  if (!x || !y || is_equal(*x, *y)) return std::nullopt;
  return Proof(Evidences{{"", unless_zero(*x), unless_zero(*y)}});
}

Shown check_prediction_layers(const RunResult& a, const RunResult& b) {
  Shown proof = show_difference("", prediction_layers_of(a), prediction_layers_of(b));
  if (proof) proof->figures += describe_more_work(a, b);
  return proof;
}

// Forced balance overrules the router, so these have no effect on the load.
Shown check_balancing(const RunResult& a, const RunResult& b) {
  if (!are_sparse(a, b) || are_balanced(a, b)) return std::nullopt;
  const Balancing x = balancing_of(a), y = balancing_of(b);
  Evidences evidence;
  add(evidence, "kind", x.kind, y.kind);
  add(evidence, "coefficient of the balancing loss", x.aux_loss, y.aux_loss);
  add(evidence, "coefficient of the router z-loss", x.z_loss, y.z_loss);
  return show(std::move(evidence));
}

Shown check_balancing_known(const Sides& sides) {
  const RunResult &a = find_run(sides.reference, hides_balancing), &b = find_run(sides.subject, hides_balancing);
  if (!are_sparse(a, b) || are_balanced(a, b)) return std::nullopt;
  if (!a.model_info.shape || !b.model_info.shape) return std::nullopt;  // shape_missing
  const auto describe = [](const Balancing& each) {
    if (!each.is_any()) return std::string("nothing stated");
    return fmt::format("{}, coefficient {}", each.kind.value_or("kind unknown"), each.aux_loss.value_or("0"));
  };
  const Balancing x = balancing_of(a), y = balancing_of(b);
  if (x.is_any() == y.is_any() || !(hides_balancing(a) || hides_balancing(b))) return std::nullopt;
  return Proof(Evidences{{"", describe(x), describe(y)}});
}

Shown check_active_count(const Sides& sides) {
  const Contender &a = sides.reference, &b = sides.subject;
  Shown shown = show_active_count(find_run(a, has_no_shape), find_run(b, has_shape));
  return shown ? shown : show_active_count(find_run(a, has_shape), find_run(b, has_no_shape));
}

Shown check_dropped_tokens(const Sides& sides) {
  constexpr double k_worth_telling = 0.01;
  if (check_capacity(sides.reference.first(), sides.subject.first())) return std::nullopt;
  const auto x = mean_of(sides.reference, dropped_share_of), y = mean_of(sides.subject, dropped_share_of);
  if (!x || !y || !is_beyond_noise(*x, *y, k_worth_telling)) return std::nullopt;
  return Proof(Evidences{{"", format_percent(x->mean), format_percent(y->mean)}});
}

Shown check_expert_load(const Sides& sides) {
  constexpr double k_worth_telling = 0.1;  // of the lower load
  const RunResult &a = sides.reference.first(), &b = sides.subject.first();
  if (check_routing(a, b) || (has_whole_layers(a) && has_whole_layers(b))) return std::nullopt;
  const auto x = mean_of(sides.reference, load_of), y = mean_of(sides.subject, load_of);
  if (!x || !y || !is_beyond_noise(*x, *y, k_worth_telling * std::min(x->mean, y->mean))) return std::nullopt;
  Proof proof(Evidences{{"", format_significant(x->mean, 3), format_significant(y->mean, 3)}});
  proof.figures += " times the mean load" + describe_fuller_side(sides, x->mean > y->mean);
  return proof;
}

std::optional<Proof> check_forced_balance(const LoadedRun& run) {
  if (routing_of(run.result) != Routing::balanced) return std::nullopt;
  return Proof(describe_published_gain(run.result));
}

std::optional<Proof> check_dropping(const LoadedRun& run) {
  constexpr double k_worth_telling = 0.01;
  const auto share = dropped_share_of(run.result);
  if (!share || !(*share > k_worth_telling)) return std::nullopt;
  return Proof(fmt::format("{} of the token-expert assignments", format_percent(*share)));
}

std::optional<Proof> check_own_count(const LoadedRun& run) {
  if (!counts_active_parameters(run.result)) return std::nullopt;
  return Proof(fmt::format("{} of {}", format_count(static_cast<double>(*run.result.model_info.num_parameters)),
                           format_count(static_cast<double>(count_parameters(*run.result.model_info.shape).total()))));
}

std::optional<Proof> check_dense_count(const LoadedRun& run) {
  const auto count = run.dense_count ? run.dense_count : describe_dense_count(run.result);
  return count ? std::optional(Proof(*count)) : std::nullopt;
}

std::optional<Proof> check_load_effect(const LoadedRun& run) {
  const auto effect = run.load_effect ? run.load_effect : describe_load_effect(run.result);
  return effect ? std::optional(Proof(*effect)) : std::nullopt;
}

// Ranks are compared, as one slow step must not decide.
std::optional<std::string> describe_load_effect(const RunResult& run) {
  constexpr size_t k_enough = 20;
  constexpr double k_related = 0.6, k_worth_telling = 0.02, k_load_moves = 0.05;
  const LoadedSteps steps = steps_with_load(run);
  if (steps.loads.size() < k_enough) return std::nullopt;
  const double low = quantile(steps.loads, 0.125), high = quantile(steps.loads, 0.875);
  if (!(low > 0 && high > low * (1 + k_load_moves))) return std::nullopt;
  const double related = spearman(steps.loads, steps.times);
  const double fast = time_of_quarter(steps, false), slow = time_of_quarter(steps, true);
  if (related < k_related || !(slow > fast * (1 + k_worth_telling))) return std::nullopt;
  return fmt::format(
      "with the fullest expert at {} times the mean load a step takes {}, at {} times {} (rank correlation {:.2f} over "
      "{} steps)",
      format_significant(low, 3), format_duration(fast), format_significant(high, 3), format_duration(slow), related,
      steps.loads.size());
}

}  // namespace tprimat::results

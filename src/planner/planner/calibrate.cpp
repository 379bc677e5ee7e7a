#include "planner/calibrate.h"

#include <cminpack-1/cminpack.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "planner/step_time.h"

namespace tprimat::planner {
namespace {

// Squares of large errors grow linearly, so that one wrong row does not bend a parameter.
double weigh(double error) { return error / std::sqrt(1 + std::fabs(error) / 2); }

// Observations of one workload on one machine are no more independent than one: together they count as one.
std::string describe_copies(const Observation& each) {
  const Workload& w = each.workload;
  const Layout& l = w.layout;
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", each.machine.id, w.family->id, w.release, w.shape.name,
                     w.shape.num_layers, enum_name(w.precision), w.sequence_length, w.global_batch, l.num_gpus(),
                     l.tensor, l.pipeline, l.micro_batch, l.expert);
}

// 1 / noise of each. Routing and fused kernels that no row names make sparse models twice as noisy.
std::vector<double> weights_of(const std::vector<Observation>& observations, double noise) {
  constexpr double k_sparse = 1.2;
  std::map<std::string, int64_t> copies;
  for (const Observation& each : observations) ++copies[describe_copies(each)];
  std::vector<double> weights;
  for (const Observation& each : observations)
    weights.push_back(1 / (noise * (each.workload.shape.experts ? k_sparse : 1) *
                           std::sqrt(static_cast<double>(copies[describe_copies(each)]))));
  return weights;
}

// Parameters that are fitted, as the exponents z of value = prior * exp(z * spread).
class Residuals {
 public:
  Residuals(ParameterSet priors, const std::vector<Observation>& observations, double noise)
      : parameters_(std::move(priors)), observations_(observations), weights_(weights_of(observations, noise)) {
    for (size_t i = 0; i < parameters_.all().size(); ++i)
      if (parameters_.all()[i].spread > 0 && moves_any(i)) fitted_.push_back(i);
  }

  int inputs() const { return static_cast<int>(fitted_.size()); }
  int values() const { return static_cast<int>(2 * observations_.size() + fitted_.size()); }

  void apply(const double* z) {
    for (int i = 0; i < inputs(); ++i) apply_one(i, z[i]);
  }

  void evaluate(const double* z, double* residuals) {
    apply(z);
    for (size_t row = 0; row < observations_.size(); ++row) {
      *residuals++ = time_residual(row);
      *residuals++ = memory_residual(row);
    }
    std::copy_n(z, inputs(), residuals);
  }

  // `jacobian` is values() x inputs(), column by column.
  void differentiate(const double* z, double* jacobian) {
    constexpr double k_step = 1e-4;
    std::vector<double> centre(static_cast<size_t>(values()));
    evaluate(z, centre.data());
    for (int i = 0; i < inputs(); ++i, jacobian += values()) {
      std::fill_n(jacobian, values(), 0.0);
      apply_one(i, z[i] + k_step);
      for (size_t row = 0; row < observations_.size(); ++row) {
        if (!touches(parameter(i), observations_[row])) continue;
        jacobian[2 * row] = (time_residual(row) - centre[2 * row]) / k_step;
        jacobian[2 * row + 1] = (memory_residual(row) - centre[2 * row + 1]) / k_step;
      }
      apply_one(i, z[i]);
      jacobian[2 * observations_.size() + static_cast<size_t>(i)] = 1;
    }
  }

  // By the covariance of the exponents.
  std::map<std::string, double> deviations(const std::vector<double>& covariance, size_t rows) const {
    std::map<std::string, double> found;
    for (size_t i = 0; i < fitted_.size(); ++i) {
      const PlanParameter& each = parameter(static_cast<int>(i));
      found[each.name] = each.spread * std::sqrt(std::max(0.0, covariance[i * rows + i]));
    }
    return found;
  }

  // What no observation feels keeps its value of before.
  ParameterSet result(const ParameterSet& before) const {
    ParameterSet set = parameters_;
    for (size_t i = 0; i < before.all().size(); ++i)
      if (std::ranges::find(fitted_, i) == fitted_.end()) set.set_value(i, before.all()[i].value);
    return set;
  }

 private:
  const PlanParameter& parameter(int i) const { return parameters_.all()[fitted_[static_cast<size_t>(i)]]; }
  void apply_one(int i, double z) {
    const PlanParameter& each = parameter(i);
    parameters_.set_value(fitted_[static_cast<size_t>(i)], each.prior * std::exp(z * each.spread));
  }
  double time_residual(size_t row) const {
    const Observation& each = observations_[row];
    if (each.seconds <= 0) return 0;
    return weigh(std::log(predict_seconds(parameters_, each.machine, each.workload) / each.seconds) * weights_[row]);
  }
  double memory_residual(size_t row) const {
    const Observation& each = observations_[row];
    if (!each.memory_bytes) return 0;
    const double bytes = predict_bytes(each.workload, parameters_, each.memory_reading);
    return weigh(std::log(bytes / *each.memory_bytes) * weights_[row]);
  }
  static bool touches(const PlanParameter& each, const Observation& observation) {
    const size_t at = each.name.find('@');
    if (at == std::string::npos) return true;
    const std::string_view scope = std::string_view(each.name).substr(at + 1);
    if (scope.starts_with(k_machine_scope)) return scope == machine_scope(observation.machine);
    return scope == observation.machine.architecture || scope == observation.workload.family->id ||
           scope == observation.workload.release || scope == observation.workload.shape.name ||
           scope == observation.machine.id;
  }
  // A parameter that no observation feels keeps its value.
  bool moves_any(size_t index) {
    constexpr double k_nudge = 1.01;
    const PlanParameter before = parameters_.all()[index];
    for (const double factor : {k_nudge, 1 / k_nudge})
      for (size_t row = 0; row < observations_.size(); ++row) {
        if (!touches(before, observations_[row])) continue;
        const double time = time_residual(row), memory = memory_residual(row);
        parameters_.set_value(index, before.value * factor);
        const bool moved = time_residual(row) != time || memory_residual(row) != memory;
        parameters_.set_value(index, before.value);
        if (moved) return true;
      }
    return false;
  }

  ParameterSet parameters_;
  const std::vector<Observation>& observations_;
  std::vector<double> weights_;  // of the observations
  std::vector<size_t> fitted_;   // indices in parameters_
};

// MINPACK's callback: the residuals at z, or their derivatives.
// NOLINTNEXTLINE(readability-function-size): MINPACK's signature
int answer_minpack(void* problem, int /*values*/, int /*inputs*/, const double* z, double* residuals, double* jacobian,
                   int /*rows*/, int wanted) {
  constexpr int k_residuals = 1, k_jacobian = 2;
  if (wanted == k_residuals) static_cast<Residuals*>(problem)->evaluate(z, residuals);
  if (wanted == k_jacobian) static_cast<Residuals*>(problem)->differentiate(z, jacobian);
  return 0;
}

// The z with the least squares, from z = 0 on, and their covariance: column by column, as high as there are residuals.
struct Minimum {
  std::vector<double> z, covariance;
};
Minimum minimize(Residuals& problem) {
  constexpr int k_max_evaluations = 200, k_scale_variables = 1, k_print_nothing = 0;
  constexpr double k_tolerance = 1e-5, k_gradient_tolerance = 0, k_step_bound = 100, k_rank_tolerance = 0;
  const int m = problem.values(), n = problem.inputs();
  const auto rows = static_cast<size_t>(m), columns = static_cast<size_t>(n);
  std::vector<double> z(columns), residuals(rows), jacobian(rows * columns), scales(columns), qtf(columns);
  std::vector<double> work1(columns), work2(columns), work3(columns), work4(rows);
  std::vector<int> pivots(columns);
  int evaluations = 0, jacobians = 0;
  lmder(answer_minpack, &problem, m, n, z.data(), residuals.data(), jacobian.data(), m, k_tolerance, k_tolerance,
        k_gradient_tolerance, k_max_evaluations, scales.data(), k_scale_variables, k_step_bound, k_print_nothing,
        &evaluations, &jacobians, pivots.data(), qtf.data(), work1.data(), work2.data(), work3.data(), work4.data());
  covar(n, jacobian.data(), m, pivots.data(), k_rank_tolerance, work1.data());
  return {std::move(z), std::move(jacobian)};
}

std::vector<MeasuredRun> sparse_runs(const ParameterSet& fitted, const std::vector<Observation>& observations) {
  std::vector<MeasuredRun> runs;
  for (const Observation& each : observations)
    if (each.workload.shape.experts && each.seconds > 0)
      runs.push_back(measured_run(each.workload, each.machine,
                                  each.seconds / predict_seconds(fitted, each.machine, each.workload)));
  return runs;
}

}  // namespace

double predict_seconds(const ParameterSet& parameters, const Machine& machine, const Workload& workload) {
  return time_step(workload, machine, resolve_rates(parameters, machine, workload)).total();
}

Fit fit_parameters(const ParameterSet& before, ParameterSet priors, const std::vector<Observation>& observations,
                   double noise) {
  Residuals problem(std::move(priors), observations, noise);
  if (observations.empty() || problem.inputs() == 0) return {problem.result(before), {}};
  const Minimum found = minimize(problem);
  problem.apply(found.z.data());
  return {problem.result(before), problem.deviations(found.covariance, static_cast<size_t>(problem.values()))};
}

ParameterSet calibrate(ParameterSet priors, const std::vector<Observation>& observations) {
  constexpr double k_noise = 0.06;  // of a published figure about the model's prediction, relative
  priors.drop_machines();
  const ParameterSet before = priors;
  priors.reset();
  for (const Observation& each : observations) priors.add_factors(each.workload, each.machine);
  ParameterSet fitted = fit_parameters(before, std::move(priors), observations, k_noise).parameters;
  std::vector<MeasuredRun> runs = sparse_runs(fitted, observations);
  fitted.set_measured_runs(runs.empty() ? before.measured_runs() : std::move(runs));
  return fitted;
}

}  // namespace tprimat::planner

#include "result/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <set>

#include "result/active_count.h"
#include "result/peak.h"
#include "result/printed_settings.h"
#include "result/summary.h"
#include "spec/hardware_catalogue.h"
#include "text/format.h"

namespace tprimat {
namespace {

using Kind = Contradiction::Kind;

class Comparer {
 public:
  // Files may round.
  explicit Comparer(std::vector<Contradiction>& found, double tolerance = 1e-3)
      : found_(found), tolerance_(tolerance) {}
  void compare(const std::string& figure, double stated, double derived, Kind kind = Kind::figure) {
    if (std::fabs(stated - derived) <= tolerance_ * std::fabs(derived)) return;
    found_.push_back({figure, format_significant(stated, 5), format_significant(derived, 5), kind});
  }
  // A figure whose inputs are missing is a contradiction too.
  template <class Figure>
  void compare(const std::string& figure, const std::optional<Figure>& stated, const std::optional<Figure>& derived,
               Kind kind = Kind::figure) {
    if (stated && derived)
      compare(figure, value_of(*stated), value_of(*derived), kind);
    else if (stated)
      found_.push_back({figure, format_significant(value_of(*stated), 5), "nothing", kind});
  }
  // An interval holds its figure.
  void require_within(const std::string& figure, const std::optional<Estimate>& stated) {
    if (!stated || !stated->low || !stated->high) return;
    const double slack = tolerance_ * std::fabs(stated->value);
    if (stated->value >= *stated->low - slack && stated->value <= *stated->high + slack) return;
    if (std::ranges::find(found_, figure, &Contradiction::what) != found_.end()) return;
    const std::string interval =
        fmt::format("{} to {}", format_significant(*stated->low, 5), format_significant(*stated->high, 5));
    found_.push_back({figure, format_significant(stated->value, 5), interval, Kind::figure});
  }

 private:
  static double value_of(double value) { return value; }
  static double value_of(const Estimate& estimate) { return estimate.value; }

  std::vector<Contradiction>& found_;
  double tolerance_;
};

// No figure follows from a shape that no model has.
void refuse_impossible_shape(const RunResult& stored, std::vector<Contradiction>& found) {
  if (!stored.model_info.shape) return;
  const std::vector<Problem> problems = check_model(*stored.model_info.shape, "");
  if (!problems.empty())
    found.push_back({"the stated shape is impossible:", problems.front().what, "no FLOPs", Kind::shape});
}

// Two counts that may belong to one model do not put the speed in doubt.
void compare_shape(const RunResult& stored, Comparer& comparer) {
  const auto& shape = stored.model_info.shape;
  if (!shape || !stored.model_info.num_parameters || !check_model(*shape, "").empty()) return;
  if (counts_active_parameters(stored)) return;  // the audit says so
  const auto derived = static_cast<double>(count_parameters(*shape).total());
  comparer.compare("parameters", static_cast<double>(*stored.model_info.num_parameters), derived,
                   may_be_count_of(stored, derived) ? Kind::figure : Kind::shape);
}

// A catalogue's peak carries the id of its part and precision.
void compare_peak(const RunResult& stored, Comparer& comparer) {
  if (!stored.derived.peak) return;
  const auto known = catalogue_value(*stored.derived.peak);
  if (known) comparer.compare("peak " + stored.derived.peak->id, stored.derived.peak->flops_per_second, *known);
}

void compare_derived(const Derived& stated, const Derived& derived, Comparer& comparer) {
  comparer.compare("tokens/s", stated.tokens_per_second, derived.tokens_per_second, Kind::rate);
  comparer.compare("tokens/s per device", stated.tokens_per_second_per_gpu, derived.tokens_per_second_per_gpu,
                   Kind::rate);
  for (const auto& [formula, flops] : stated.flops_per_token)
    if (const auto same = derived.flops_per_token.find(formula); same != derived.flops_per_token.end())
      comparer.compare("FLOPs per token, " + formula, flops, same->second, Kind::shape);
  const bool other_formula =
      stated.headline_formula != derived.headline_formula && stated.flops_per_token.count(stated.headline_formula) > 0;
  if (!other_formula) {
    comparer.compare("TFLOP/s per device", stated.tflops_per_gpu, derived.tflops_per_gpu);
    comparer.compare("MFU", stated.mfu, derived.mfu);
  }
  comparer.compare("joules per token", stated.joules_per_token, derived.joules_per_token);
  comparer.compare("USD per 1e12 tokens", stated.usd_per_1e12_tokens, derived.usd_per_1e12_tokens);
  comparer.require_within("tokens/s", stated.tokens_per_second);
  comparer.require_within("tokens/s per device", stated.tokens_per_second_per_gpu);
  comparer.require_within("TFLOP/s per device", stated.tflops_per_gpu);
  comparer.require_within("MFU", stated.mfu);
  comparer.require_within("joules per token", stated.joules_per_token);
  comparer.require_within("USD per 1e12 tokens", stated.usd_per_1e12_tokens);
}

void compare_statistics(const RunResult& stored, const RunResult& again, Comparer& comparer) {
  comparer.compare("warm-up steps", static_cast<double>(stored.warmup.steps_excluded),
                   static_cast<double>(again.warmup.steps_excluded), Kind::rate);
  if (stored.statistics && again.statistics) {
    const StepStatistics &stated = *stored.statistics, &derived = *again.statistics;
    comparer.compare("steady steps", static_cast<double>(stated.count), static_cast<double>(derived.count));
    comparer.compare("mean step time, s", stated.mean, derived.mean, Kind::rate);
    comparer.compare("median step time, s", stated.median, derived.median, Kind::rate);
    comparer.compare("standard deviation of step times, s", stated.stddev, derived.stddev);
    comparer.compare("5th percentile of step times, s", stated.p5, derived.p5);
    comparer.compare("95th percentile of step times, s", stated.p95, derived.p95);
    comparer.compare("variation of step times", stated.cv, derived.cv);
  }
  if (!stored.performance_metrics || !again.performance_metrics) return;
  const PerformanceMetrics &stated = *stored.performance_metrics, &derived = *again.performance_metrics;
  comparer.compare("time of all steps, s", stated.total_time_seconds, derived.total_time_seconds);
  comparer.compare("shortest step, s", stated.min_step_time_seconds, derived.min_step_time_seconds);
  comparer.compare("longest step, s", stated.max_step_time_seconds, derived.max_step_time_seconds);
  comparer.compare("average step time, s", stated.avg_step_time_seconds, derived.avg_step_time_seconds);
  comparer.compare("average tokens/s", stated.tokens_per_second, derived.tokens_per_second);
  comparer.compare("average tokens/s per device", stated.tokens_per_second_per_gpu, derived.tokens_per_second_per_gpu);
}

// 0 where a factor is not known, or no size at all.
int64_t product(std::initializer_list<std::optional<int64_t>> factors) {
  int64_t all = 1;
  for (const auto& factor : factors) {
    if (!factor || *factor <= 0 || all > (int64_t{1} << 40) / *factor) return 0;
    all *= *factor;
  }
  return all;
}

// torchtitan prints the degree within which weights are sharded, and beside it how often that group is repeated.
std::optional<int64_t> replicas(const RunResult& run) {
  if (!run.effective_config) return 1;
  const auto found = run.effective_config->find("parallelism.data_parallel_replicate_degree");
  int64_t count = 0;
  if (found == run.effective_config->end() || std::sscanf(found->second.c_str(), "%" SCNd64, &count) != 1) return 1;
  return count;
}

// The products of the layout and of the batch; 0 where a factor is not known.
struct Products {
  int64_t devices = 0, batch = 0;
};

// Megatron-LM excludes the ranks that share a sequence from DP, others include them. Without DP it follows from the
// devices.
Products multiply(const RunResult& run, bool data_parallel_holds_context) {
  const ParallelismConfig& p = run.parallelism_config;
  const TrainingConfig& t = run.training_config;
  const int64_t context = p.context_parallel_size.value_or(1);
  const int64_t inner = product({p.tensor_model_parallel_size, p.pipeline_model_parallel_size, context});
  int64_t data = product({p.data_parallel_size, replicas(run)});
  if (data_parallel_holds_context && context > 0) data = data % context == 0 ? data / context : 0;
  Products products{product({inner, data}), 0};
  const int64_t devices = device_count(run).value_or(0);
  if (data == 0 && inner > 0 && devices % inner == 0) data = devices / inner;
  products.batch = product({t.micro_batch_size, data, p.gradient_accumulation_steps});
  return products;
}

// Where a factor is not known, the known ones must still divide the whole.
void compare_divisors(const RunResult& stored, std::vector<Contradiction>& found) {
  const ParallelismConfig& p = stored.parallelism_config;
  const TrainingConfig& t = stored.training_config;
  const auto check = [&](const char* what, const std::optional<int64_t>& stated, int64_t divisor) {
    if (stated && *stated > 0 && divisor > 0 && *stated % divisor != 0)
      found.push_back({what, fmt::format("{}", *stated), fmt::format("a multiple of {}", divisor), Kind::layout});
  };
  const auto known = [](const std::optional<int64_t>& size) { return size.value_or(1); };
  const int64_t inner = product(
      {known(p.tensor_model_parallel_size), known(p.pipeline_model_parallel_size), known(p.context_parallel_size)});
  if (!p.data_parallel_size) check("devices, of TP x PP x CP", device_count(stored), inner);
  if (p.gradient_accumulation_steps) return;
  const int64_t context = std::max<int64_t>(1, known(p.context_parallel_size)), data = known(p.data_parallel_size);
  const bool may_hold_context = data % context == 0;  // at least this many ranks share the batch
  check("global batch size, of MBS x DP", t.global_batch_size,
        product({known(t.micro_batch_size), may_hold_context ? data / context : data}));
}

// The ranks that the experts of a layer are split over; 0 where they are not known.
int64_t ranks_of_stage(const RunResult& run) {
  const ParallelismConfig& p = run.parallelism_config;
  const int64_t devices = device_count(run).value_or(0);
  const int64_t stages = product({p.pipeline_model_parallel_size});
  if (stages > 0 && devices > 0 && devices % stages == 0) return devices / stages;
  const int64_t ranks =
      product({p.tensor_model_parallel_size, p.context_parallel_size.value_or(1), p.data_parallel_size, replicas(run)});
  return ranks > 0 ? ranks : devices;
}

// EP x ETP ranks hold each expert of their layers once, and each of the EP parts the same number of experts.
void compare_expert_layout(const RunResult& stored, std::vector<Contradiction>& found) {
  const ParallelismConfig& p = stored.parallelism_config;
  const int64_t parts = p.expert_model_parallel_size.value_or(1);
  const int64_t tensor = p.expert_tensor_parallel_size.value_or(1);
  const int64_t ranks = ranks_of_stage(stored);
  if (parts < 1 || tensor < 1) return;
  const bool fits = parts <= ranks / tensor && ranks % (parts * tensor) == 0;
  if (ranks > 0 && !fits)
    found.push_back({"EP x ETP", fmt::format("{} x {}", parts, tensor),
                     fmt::format("a divisor of {}, of TP x CP x DP", ranks), Kind::layout});
  const auto& shape = stored.model_info.shape;
  const int64_t count = shape && shape->experts ? shape->experts->count : 0;
  if (count > 0 && count % parts != 0)
    found.push_back({"EP", fmt::format("{}", parts), fmt::format("a divisor of the {} experts", count), Kind::layout});
}

void compare_layout(const RunResult& stored, std::vector<Contradiction>& found) {
  const TrainingConfig& t = stored.training_config;
  const auto denies = [](const std::optional<int64_t>& stated, int64_t follows) {
    return stated && follows > 0 && *stated != follows;
  };
  const auto devices = device_count(stored);
  Products products = multiply(stored, false);
  const Products other = multiply(stored, true);
  if (denies(devices, products.devices) && !denies(devices, other.devices)) products = other;
  const auto check = [&](const char* what, const std::optional<int64_t>& stated, int64_t follows) {
    if (denies(stated, follows))
      found.push_back({what, fmt::format("{}", *stated), fmt::format("{}", follows), Kind::layout});
  };
  check("devices, of TP x PP x DP x CP", devices, products.devices);
  check("global batch size, of MBS x DP x GA", t.global_batch_size, products.batch);
  compare_divisors(stored, found);
  compare_expert_layout(stored, found);
  check("tokens per step, of GBS x SL", t.tokens_per_step, product({t.global_batch_size, t.sequence_length}));
}

// Older tools excluded any number of warm-up steps: of the means over all steps but the first k, the one next to
// `stated`.
std::optional<double> nearest_mean(const std::vector<double>& times, double stated) {
  std::optional<double> nearest;
  double sum = 0;
  for (size_t count = 1; count <= times.size(); ++count) {
    const double seconds = times[times.size() - count];
    if (!is_valid_step_time(seconds)) return std::nullopt;
    sum += seconds;
    const double mean = sum / static_cast<double>(count);
    if (2 * count >= times.size() && (!nearest || std::fabs(mean - stated) < std::fabs(*nearest - stated)))
      nearest = mean;
  }
  return nearest;
}

// Half a unit of the last digit of a figure, as a share of it. Zeros at its end are lost, hence `least_places`.
double rounding_share(double figure, int least_places) {
  constexpr int k_max_places = 15;
  constexpr double k_exact = 1e-12;
  for (int places = least_places; places < k_max_places; ++places) {
    const double units = figure * std::pow(10, places);
    if (std::fabs(std::round(units) - units) <= k_exact * std::fabs(units)) return 0.5 / std::fabs(units);
  }
  return 0;
}
double rounding_of_time(double seconds) { return rounding_share(seconds, 2); }
double rounding_of_rate(double per_second) { return rounding_share(per_second, 0); }

// A mean of the steps' rates exceeds the rate of their mean time by the square of their variation.
double gap_of_means(const RunResult& result) {
  constexpr double k_max = 0.05;
  const double cv = result.statistics ? result.statistics->cv : 0;
  return std::min(2 * cv * cv, k_max);
}

// With step times, the figures shown are computed from these, so a slight contradiction does not affect the speed.
Kind kind_of_gap(const RunResult& result, double stated, double derived) {
  constexpr double k_slight = 0.05;
  const bool is_slight = std::fabs(stated - derived) < k_slight * std::fabs(derived);
  return is_slight && !result.step_times.empty() ? Kind::figure : Kind::rate;
}

struct StatedFigure {
  const char* name;
  double stated, derived;
  double rounding;  // as a share of the figure
};

void compare_older(const RunResult& result, const StatedFigure& figure, std::vector<Contradiction>& found) {
  constexpr double k_min = 5e-3;  // three digits, averages of averages
  Comparer comparer(found, std::max({k_min, figure.rounding, gap_of_means(result)}));
  comparer.compare(figure.name, figure.stated, figure.derived, kind_of_gap(result, figure.stated, figure.derived));
}

// The stated mean, or the one behind the stated rate, against the step times.
void compare_stated_mean(const RunResult& result, const PerformanceMetrics& stated, std::vector<Contradiction>& found) {
  const auto tokens = tokens_per_step(result);
  if (stated.avg_step_time_seconds) {
    const double seconds = *stated.avg_step_time_seconds;
    if (const auto mean = nearest_mean(result.step_times, seconds))
      compare_older(result, {"mean step time, s", seconds, *mean, rounding_of_time(seconds)}, found);
  } else if (tokens && stated.tokens_per_second.value_or(0) > 0) {
    const auto work = static_cast<double>(*tokens);
    const double rate = *stated.tokens_per_second;
    if (const auto mean = nearest_mean(result.step_times, work / rate))
      compare_older(result, {"tokens/s", rate, work / *mean, rounding_of_rate(rate)}, found);
  }
}

// The rates that follow from a step's tokens and its mean time, in total and per device.
void compare_stated_rates(const RunResult& result, const PerformanceMetrics& stated,
                          std::vector<Contradiction>& found) {
  constexpr double k_effective_work = 0.05;  // beyond: see record_contradiction in result_file.cpp
  const auto tokens = tokens_per_step(result);
  if (tokens && stated.tokens_per_second && stated.avg_step_time_seconds && *stated.avg_step_time_seconds > 0) {
    const double derived = static_cast<double>(*tokens) / *stated.avg_step_time_seconds;
    if (std::fabs(*stated.tokens_per_second / derived - 1) <= k_effective_work)
      compare_older(result,
                    {"tokens/s", *stated.tokens_per_second, derived,
                     rounding_of_time(*stated.avg_step_time_seconds) + rounding_of_rate(*stated.tokens_per_second)},
                    found);
  }
  const auto devices = device_count(result);
  if (devices && stated.tokens_per_second && stated.tokens_per_second_per_gpu)
    compare_older(result,
                  {"tokens/s per device", *stated.tokens_per_second_per_gpu,
                   *stated.tokens_per_second / static_cast<double>(*devices),
                   rounding_of_rate(*stated.tokens_per_second_per_gpu)},
                  found);
}

// Without numbers an entry follows the one before.
int64_t steps_since_previous(const RunResult& run, size_t entry) {
  const bool is_numbered = run.steps && run.steps->numbers;
  return is_numbered ? step_number(run, entry) - step_number(run, entry - 1) : entry_span(run, entry);
}

}  // namespace

bool may_be_count_of(const RunResult& run, double known) {
  constexpr double k_max_ratio = 1.33, k_close = 1.1;
  const auto is_near = [known](double count, double ratio) { return count <= known * ratio && known <= count * ratio; };
  const auto stated = static_cast<double>(run.model_info.num_parameters.value_or(0));
  if (stated <= 0 || is_near(stated, k_max_ratio)) return true;
  const ParallelismConfig& p = run.parallelism_config;
  const int64_t model_ranks =
      product({p.tensor_model_parallel_size.value_or(1), p.pipeline_model_parallel_size.value_or(1)});
  for (const int64_t ranks : {model_ranks, device_count(run).value_or(1)})
    if (ranks > 1 && is_near(stated * static_cast<double>(ranks), k_close)) return true;
  return false;
}

std::vector<Contradiction> find_contradictions(const RunResult& stored) {
  std::vector<Contradiction> found;
  Comparer comparer(found);
  RunResult again = stored;
  summarise_run(again, stored_options(stored));
  compare_statistics(stored, again, comparer);
  compare_derived(stored.derived, again.derived, comparer);
  refuse_impossible_shape(stored, found);
  compare_shape(stored, comparer);
  compare_peak(stored, comparer);
  compare_layout(stored, found);
  compare_printed_settings(stored, found);
  return found;
}

std::vector<Contradiction> find_older_contradictions(const RunResult& result, const PerformanceMetrics& stated) {
  std::vector<Contradiction> found;
  compare_stated_mean(result, stated, found);
  compare_stated_rates(result, stated, found);
  refuse_impossible_shape(result, found);
  compare_layout(result, found);
  compare_printed_settings(result, found);
  return found;
}

std::vector<ClockedSteps> clocked_steps(const RunResult& run, size_t first) {
  std::vector<ClockedSteps> clocked;
  if (!run.reported || !run.reported->unix_time) return clocked;
  const std::vector<double>& stamps = *run.reported->unix_time;
  clocked.reserve(stamps.size());
  const std::set<int64_t> labelled = labelled_steps(run);
  for (size_t i = std::max<size_t>(1, first); i < std::min(stamps.size(), run.step_times.size()); ++i) {
    const double by_clock = stamps[i] - stamps[i - 1], seconds = run.step_times[i];
    const int64_t span = entry_span(run, i), between = steps_since_previous(run, i);
    if (!std::isfinite(by_clock) || !is_valid_step_time(seconds) || labelled.contains(step_number(run, i))) continue;
    if (between >= span) clocked.push_back({seconds * static_cast<double>(span), by_clock, between == span});
  }
  return clocked;
}

}  // namespace tprimat

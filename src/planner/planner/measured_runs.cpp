#include "planner/measured_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/enum_names.h"
#include "text/words.h"

namespace tprimat::planner {
namespace {

constexpr double k_other_setting = 0.6, k_other_precision = 0.6, k_other_release = 0.8;
constexpr double k_other_gpu = 0.5, k_other_architecture = 0.2;
constexpr double k_per_doubling = 0.4, k_per_doubling_of_size = 0.05;

// Counts of a layout as powers of two: what changes the work of a GPU, then what changes the size of the whole.
constexpr size_t k_sizes_begin = 6;
std::array<double, 8> doublings_of(const Layout& l) {
  const auto log = [](int64_t count) { return std::log2(static_cast<double>(count)); };
  return {log(l.tensor),        log(l.pipeline),    log(l.context), log(l.expert),
          log(l.expert_tensor), log(l.micro_batch), log(l.chunks),  log(l.num_gpus())};
}

double doublings_between(int64_t a, int64_t b) {
  return std::fabs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

// Of all but the layout; 0 for runs that say nothing of the workload.
double weigh_run(const MeasuredRun& run, const Machine& machine, const Workload& workload) {
  if (run.family != workload.family->id || run.model != workload.shape.name) return 0;
  double weight = 1;
  const auto unlike = [&](bool differs, double factor) { weight *= differs ? factor : 1; };
  unlike(run.machine != machine.id, run.architecture == machine.architecture ? k_other_gpu : k_other_architecture);
  unlike(run.precision != workload.precision, k_other_precision);
  unlike(run.release != workload.release, k_other_release);
  unlike(run.scaled_by_block != workload.scaled_by_block, k_other_setting);
  unlike(run.dispatcher != workload.dispatcher, k_other_setting);
  unlike(run.overlaps_experts != workload.overlaps_experts, k_other_setting);
  unlike(run.graphs != workload.graphs, k_other_setting);
  return weight * std::exp(-k_per_doubling * doublings_between(run.sequence_length, workload.sequence_length));
}

}  // namespace

MeasuredRun measured_run(const Workload& workload, const Machine& machine, double ratio) {
  MeasuredRun run;
  run.machine = machine.id, run.architecture = machine.architecture;
  run.family = workload.family->id, run.model = workload.shape.name, run.release = workload.release;
  run.precision = workload.precision, run.scaled_by_block = workload.scaled_by_block;
  run.dispatcher = workload.dispatcher, run.overlaps_experts = workload.overlaps_experts;
  run.graphs = workload.graphs;
  run.sequence_length = workload.sequence_length;
  run.layout = workload.layout;
  run.ratio = std::clamp(ratio, k_min_ratio, k_max_ratio);
  return run;
}

std::string name_run(const MeasuredRun& run) {
  const Layout& l = run.layout;
  std::string name =
      fmt::format("{}{};{};{};{};{};{};{};{};{};{};{};{}", k_run_prefix, run.machine, run.architecture, run.family,
                  run.model, run.release, enum_name(run.precision), run.scaled_by_block ? "blocks" : "",
                  run.dispatcher ? enum_name(*run.dispatcher) : "", run.overlaps_experts ? "overlap" : "",
                  enum_name(run.graphs), enum_name(l.sharding), enum_name(l.recompute));
  for (const int64_t count : {run.sequence_length, l.tensor, l.context, l.pipeline, l.chunks, l.data, l.expert,
                              l.expert_tensor, l.micro_batch})
    name += fmt::format(";{}", count);
  return name;
}

std::optional<MeasuredRun> parse_run(std::string_view name, double ratio) {
  constexpr size_t k_words = 12;
  if (!name.starts_with(k_run_prefix) || !(ratio >= k_min_ratio && ratio <= k_max_ratio)) return std::nullopt;
  const std::vector<std::string_view> parts = split(name.substr(k_run_prefix.size()), ';');
  MeasuredRun run;
  Layout& l = run.layout;
  const std::array counts{&run.sequence_length, &l.tensor,     &l.context, &l.pipeline, &l.chunks, &l.data, &l.expert,
                          &l.expert_tensor,     &l.micro_batch};
  if (parts.size() != k_words + counts.size()) return std::nullopt;
  const auto precision = parse_enum<PlanPrecision>(parts[5]);
  const auto graphs = parse_enum<Graphs>(parts[9]);
  const auto sharding = parse_enum<Sharding>(parts[10]);
  const auto recompute = parse_enum<Recompute>(parts[11]);
  if (!precision || !graphs || !sharding || !recompute) return std::nullopt;
  run.machine = parts[0], run.architecture = parts[1], run.family = parts[2], run.model = parts[3];
  run.release = parts[4], run.precision = *precision, run.scaled_by_block = !parts[6].empty();
  run.dispatcher = parse_enum<Dispatcher>(parts[7]), run.overlaps_experts = !parts[8].empty();
  run.graphs = *graphs, l.sharding = *sharding, l.recompute = *recompute;
  for (size_t i = 0; i < counts.size(); ++i) {
    constexpr int64_t k_max_count = 1LL << 40;
    const auto count = parse_number<int64_t>(parts[k_words + i]);
    if (!count || *count < 1 || *count > k_max_count) return std::nullopt;
    *counts[i] = *count;
  }
  run.ratio = ratio;
  return run;
}

NearRuns::NearRuns(const std::vector<MeasuredRun>& runs, const Machine& machine, const Workload& workload) {
  for (const MeasuredRun& run : runs) {
    const double weight = weigh_run(run, machine, workload);
    if (weight <= 0) continue;
    runs_.push_back({weight, std::log(run.ratio), doublings_of(run.layout), run.layout.sharding == Sharding::weights,
                     run.layout.recompute});
  }
}

double NearRuns::factor(const Layout& layout) const {
  if (runs_.empty()) return 1;
  const std::array<double, 8> own = doublings_of(layout);
  const bool shards_weights = layout.sharding == Sharding::weights;
  double weights = 1, sum = 0;  // a weight of 1 says that the model is right
  for (const Near& run : runs_) {
    double distance = 0;
    for (size_t i = 0; i < own.size(); ++i)
      distance += (i < k_sizes_begin ? k_per_doubling : k_per_doubling_of_size) * std::fabs(own[i] - run.doublings[i]);
    double weight = run.weight * std::exp(-distance);
    if (run.shards_weights != shards_weights) weight *= k_other_setting;
    if (run.recompute != layout.recompute) weight *= k_other_setting;
    weights += weight, sum += weight * run.log_ratio;
  }
  return std::exp(sum / weights);
}

}  // namespace tprimat::planner

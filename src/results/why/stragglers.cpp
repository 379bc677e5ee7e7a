#include "why/stragglers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "stats/descriptive.h"

namespace tprimat::results {
namespace {

using logs::OperationKind;
using logs::WorkerOperation;

constexpr double k_slowest_workers = 0.03;  // the share that counts as the slowest
constexpr double k_min_excess = 1e-6;       // of the ideal step: less is rounding

using Selects = std::function<bool(const WorkerOperation&)>;

// Replays one pipeline with mixtures of its real and its ideal durations.
class Mixtures {
 public:
  explicit Mixtures(const PipelineReplay& pipeline) : pipeline_(pipeline), ideal_(ideal_durations(pipeline)) {}

  double real() const { return mean(replay_steps(pipeline_, pipeline_.durations)); }
  double ideal() const { return mean(replay_steps(pipeline_, ideal_)); }
  double only_real(const Selects& selects) const { return mix(ideal_, pipeline_.durations, selects); }
  double only_ideal(const Selects& selects) const { return mix(pipeline_.durations, ideal_, selects); }

 private:
  double mix(std::vector<double> durations, const std::vector<double>& selected, const Selects& selects) const {
    for (size_t i = 0; i < durations.size(); ++i)
      if (selects(pipeline_.operations[i])) durations[i] = selected[i];
    return mean(replay_steps(pipeline_, durations));
  }

  const PipelineReplay& pipeline_;
  std::vector<double> ideal_;
};

void sort_parts(std::vector<StragglerPart>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.slowdown > b.slowdown; });
}

// A send and its receive are one transfer.
std::string operation_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::forward_send:
    case OperationKind::forward_recv: return "forward_messages";
    case OperationKind::backward_send:
    case OperationKind::backward_recv: return "backward_messages";
    default: return std::string(enum_name(kind));
  }
}

std::vector<StragglerPart> split_by_operation(const PipelineReplay& pipeline, const Mixtures& mixtures, double ideal) {
  std::set<std::string> names;
  for (const WorkerOperation& row : pipeline.operations) names.insert(operation_name(row.kind));
  std::vector<StragglerPart> parts;
  for (const std::string& name : names) {
    const auto selects = [&](const WorkerOperation& row) { return operation_name(row.kind) == name; };
    parts.push_back({name, mixtures.only_real(selects) / ideal});
  }
  return parts;
}

std::vector<StragglerPart> split_by_place(int32_t count, int32_t WorkerOperation::*place, std::string_view title,
                                          const Mixtures& mixtures, double ideal) {
  std::vector<StragglerPart> parts;
  for (int32_t i = 0; i < count; ++i) {
    const auto selects = [&](const WorkerOperation& row) { return row.*place == i; };
    parts.push_back({fmt::format("{} {}", title, i), mixtures.only_real(selects) / ideal});
  }
  return parts;
}

// In the order of their slowdowns; both lists of parts are still in the order of replicas and stages.
std::vector<StragglerWorker> rank_workers(const PipelineReplay& pipeline, const StragglerReport& report) {
  std::set<std::pair<int32_t, int32_t>> places;
  for (const WorkerOperation& row : pipeline.operations) places.insert({row.dp_rank, row.stage});
  std::vector<StragglerWorker> workers;
  for (const auto& [dp_rank, stage] : places)
    workers.push_back({dp_rank, stage,
                       std::min(report.replicas.at(static_cast<size_t>(dp_rank)).slowdown,
                                report.stages.at(static_cast<size_t>(stage)).slowdown)});
  std::stable_sort(workers.begin(), workers.end(),
                   [](const auto& a, const auto& b) { return a.slowdown > b.slowdown; });
  return workers;
}

void measure_shares(const PipelineReplay& pipeline, const Mixtures& mixtures, StragglerReport& report) {
  const auto is_last = [&](const WorkerOperation& row) { return row.stage == pipeline.stages - 1; };
  const auto is_slow = [&](const WorkerOperation& row) {
    return std::any_of(report.slowest.begin(), report.slowest.end(), [&](const StragglerWorker& worker) {
      return worker.dp_rank == row.dp_rank && worker.stage == row.stage;
    });
  };
  report.without_last_stage_seconds = mixtures.only_ideal(is_last);
  report.without_slowest_workers_seconds = mixtures.only_ideal(is_slow);
  const double excess = report.no_delay_seconds - report.ideal_seconds;
  if (excess <= k_min_excess * report.ideal_seconds) return;
  report.last_stage_share = (report.no_delay_seconds - report.without_last_stage_seconds) / excess;
  report.slowest_workers_share = (report.no_delay_seconds - report.without_slowest_workers_seconds) / excess;
}

}  // namespace

std::vector<double> ideal_durations(const PipelineReplay& pipeline) {
  std::map<OperationKind, std::vector<double>> by_kind;
  for (size_t i = 0; i < pipeline.operations.size(); ++i)
    by_kind[pipeline.operations[i].kind].push_back(pipeline.durations[i]);
  std::map<OperationKind, double> even;
  for (const auto& [kind, durations] : by_kind)
    even[kind] = is_communication(kind) ? median(durations) : mean(durations);
  std::vector<double> ideal;
  for (const WorkerOperation& row : pipeline.operations) ideal.push_back(even[row.kind]);
  return ideal;
}

StragglerReport find_stragglers(const PipelineReplay& pipeline) {
  const Mixtures mixtures(pipeline);
  StragglerReport report;
  report.steps = static_cast<int64_t>(pipeline.steps.size());
  report.measured_seconds = mean(pipeline.measured);
  report.no_delay_seconds = mixtures.real();
  report.ideal_seconds = mixtures.ideal();
  report.launch_slowdown = report.measured_seconds / report.no_delay_seconds;
  report.slowdown = report.no_delay_seconds / report.ideal_seconds;
  report.operations = split_by_operation(pipeline, mixtures, report.ideal_seconds);
  report.stages = split_by_place(pipeline.stages, &WorkerOperation::stage, "stage", mixtures, report.ideal_seconds);
  report.replicas =
      split_by_place(pipeline.dp_ranks, &WorkerOperation::dp_rank, "replica", mixtures, report.ideal_seconds);
  report.slowest = rank_workers(pipeline, report);
  report.workers = static_cast<int64_t>(report.slowest.size());
  report.slowest.resize(static_cast<size_t>(std::ceil(k_slowest_workers * static_cast<double>(report.workers))));
  measure_shares(pipeline, mixtures, report);
  for (auto* parts : {&report.stages, &report.replicas, &report.operations}) sort_parts(*parts);
  return report;
}

}  // namespace tprimat::results

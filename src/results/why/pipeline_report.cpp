#include "why/pipeline_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "stats/descriptive.h"
#include "text/format.h"

namespace tprimat::results {
namespace {

using logs::OperationKind;
using logs::WorkerOperation;

constexpr double k_notable_slowdown = 1.02;
constexpr double k_notable_share = 0.5;
constexpr double k_notable_error = 0.05;

std::vector<PipelineWorker> sum_workers(const PipelineReplay& pipeline, double step_seconds) {
  std::map<std::pair<int32_t, int32_t>, PipelineWorker> workers;
  const double steps = static_cast<double>(pipeline.steps.size());
  for (const WorkerOperation& row : pipeline.operations) {
    PipelineWorker& worker = workers[{row.dp_rank, row.stage}];
    worker.dp_rank = row.dp_rank;
    worker.stage = row.stage;
    if (row.kind == OperationKind::forward_compute) worker.forward_seconds += row.duration / steps;
    if (row.kind == OperationKind::backward_compute) worker.backward_seconds += row.duration / steps;
  }
  std::vector<PipelineWorker> list;
  for (auto& [place, worker] : workers) {
    worker.bubble = 1 - (worker.forward_seconds + worker.backward_seconds) / step_seconds;
    list.push_back(worker);
  }
  return list;
}

int64_t count_micro_batches(const PipelineReplay& pipeline) {
  std::set<int32_t> seen;
  int64_t forward = 0;
  for (const WorkerOperation& row : pipeline.operations) {
    if (row.step != pipeline.steps.front() || row.dp_rank != 0 || row.stage != 0) continue;
    if (row.kind != OperationKind::forward_compute) continue;
    ++forward;
    seen.insert(row.micro_batch);
  }
  return seen.contains(-1) ? forward : std::ssize(seen);
}

// With all workers equally fast.
double find_balanced_bubble(const PipelineReplay& pipeline, double ideal_seconds, size_t workers) {
  const std::vector<double> ideal = ideal_durations(pipeline);
  double computed = 0;
  for (size_t i = 0; i < ideal.size(); ++i)
    if (is_compute(pipeline.operations[i].kind)) computed += ideal[i];
  const double per_worker = computed / static_cast<double>(pipeline.steps.size() * workers);
  return 1 - per_worker / ideal_seconds;
}

void find_causes(PipelineReport& report) {
  const StragglerReport& found = report.stragglers;
  const double excess = found.no_delay_seconds - found.ideal_seconds;
  const bool notable = found.slowdown >= k_notable_slowdown;
  if (notable)
    report.findings.push_back(fmt::format("Unequal durations of the workers make the step {} longer: {} of {}.",
                                          format_percent(found.slowdown - 1), format_duration(excess),
                                          format_duration(found.no_delay_seconds)));
  if (notable && found.last_stage_share.value_or(0) >= k_notable_share)
    report.findings.push_back(
        fmt::format("The last stage takes longer than the others: if it were as fast, the step would take {}. Move "
                    "layers from it to earlier stages: it also computes the loss.",
                    format_duration(found.without_last_stage_seconds)));
  const bool is_one_worker = report.replicas > 1 || report.findings.size() < 2;  // else it is the last stage
  if (notable && is_one_worker && found.slowest_workers_share.value_or(0) >= k_notable_share)
    report.findings.push_back(
        fmt::format("Stage {} of replica {} is slow: if it were as fast as the others, the step would take {}. Check "
                    "that machine's "
                    "clocks, temperature and links with tprimat doctor.",
                    found.slowest.front().stage, found.slowest.front().dp_rank,
                    format_duration(found.without_slowest_workers_seconds)));
  if (report.balanced_bubble >= 0.1 && report.stages > 1)
    report.findings.push_back(fmt::format(
        "With equally fast workers, the bubble of {} micro-batches on {} stages would be {}. Use more micro-batches "
        "or virtual stages.",
        report.micro_batches, report.stages, format_percent(report.balanced_bubble)));
}

}  // namespace

PipelineReport report_pipeline(const PipelineReplay& pipeline) {
  PipelineReport report;
  report.stragglers = find_stragglers(pipeline);
  report.steps = report.stragglers.steps;
  report.stages = pipeline.stages;
  report.replicas = pipeline.dp_ranks;
  report.micro_batches = count_micro_batches(pipeline);
  report.step_seconds = report.stragglers.measured_seconds;
  report.workers = sum_workers(pipeline, report.step_seconds);
  for (const PipelineWorker& worker : report.workers)
    report.bubble += worker.bubble / static_cast<double>(report.workers.size());
  report.balanced_bubble = find_balanced_bubble(pipeline, report.stragglers.ideal_seconds, report.workers.size());
  if (std::fabs(report.stragglers.replay_error()) > k_notable_error)
    report.notes.push_back(fmt::format(
        "the replay of the recorded operations takes {}, the step took {}: the rest is delays of the host and "
        "operations that are not recorded",
        format_duration(report.stragglers.no_delay_seconds), format_duration(report.step_seconds)));
  find_causes(report);
  return report;
}

}  // namespace tprimat::results

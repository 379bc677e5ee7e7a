#include "planner/time_to_target.h"

#include <algorithm>
#include <set>
#include <vector>

#include "published/submissions.h"
#include "spec/tsv_rows.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view targets_tsv;
}

namespace {

// One reference convergence point.
struct TargetPoint {
  std::string benchmark, round;
  double batch = 0, samples = 0;
  double first = 0, every = 0, evaluated = 0;  // of evaluations, samples
};

const std::vector<TargetPoint>& target_points() {
  static const std::vector<TargetPoint> loaded = [] {
    std::vector<TargetPoint> points;
    for (const TsvRow& row : parse_tsv_rows(embedded::targets_tsv)) {
      const auto figure = [&](const char* column) { return parse_figure(row.at(column)); };
      points.push_back({row.at("benchmark"), row.at("round"), figure("batch"), figure("samples"), figure("first"),
                        figure("every"), figure("evaluated")});
    }
    return points;
  }();
  return loaded;
}

// Of the latest round that is not after the task's, in the order of their batches.
std::vector<TargetPoint> points_of(const TargetTask& task) {
  std::string latest;
  for (const TargetPoint& each : target_points())
    if (each.benchmark == task.benchmark && each.round <= task.round) latest = std::max(latest, each.round);
  std::vector<TargetPoint> points;
  for (const TargetPoint& each : target_points())
    if (each.benchmark == task.benchmark && each.round == latest) points.push_back(each);
  return points;
}

std::optional<double> interpolate(const std::vector<TargetPoint>& points, double batch) {
  const auto above = std::ranges::find_if(points, [&](const TargetPoint& each) { return each.batch >= batch; });
  if (above == points.end()) return std::nullopt;
  if (above->batch == batch) return above->samples;
  if (above == points.begin()) return std::nullopt;
  const TargetPoint& below = *std::prev(above);
  const double share = (batch - below.batch) / (above->batch - below.batch);
  return below.samples + share * (above->samples - below.samples);
}

}  // namespace

TargetTask target_task(const PublishedRow& row) {
  const auto round = submission_round(row);
  if (!round) return {};
  static const std::set<std::string> known = [] {
    std::set<std::string> names;
    for (const TargetPoint& each : target_points()) names.insert(each.benchmark);
    return names;
  }();
  if (known.contains(row.cell("benchmark"))) return {row.cell("benchmark"), *round};
  const std::string source = row.cell("source").substr(0, 1000);
  for (const std::string& name : known)
    if (source.find('/' + name) != std::string::npos) return {name, *round};
  return {};
}

std::optional<double> samples_to_target(const TargetTask& task, int64_t global_batch) {
  return interpolate(points_of(task), static_cast<double>(global_batch));
}

std::optional<double> minutes_to_target(const TargetTask& task, const Workload& workload, double step_seconds) {
  const auto samples = samples_to_target(task, workload.global_batch);
  if (!samples) return std::nullopt;
  const TargetPoint point = points_of(task).front();
  // A forward pass is a third of a step, or half of one where no gradients of the weights follow.
  const double forward = workload.trains_adapters ? 1.0 / 2 : 1.0 / 3;
  const double evaluations = std::max(1.0, 1 + (*samples - point.first) / point.every);
  const double steps =
      (*samples + evaluations * point.evaluated * forward) / static_cast<double>(workload.global_batch);
  constexpr double k_seconds_per_minute = 60;
  return steps * step_seconds / k_seconds_per_minute;
}

}  // namespace tprimat::planner

#include "run/suite_document.h"

#include "run/version_notes.h"

namespace tprimat::suite::document {
namespace {

template <class T>
std::optional<T> if_any(T list) {
  return list.empty() ? std::nullopt : std::optional(std::move(list));
}

std::vector<PlannedFile> describe_files(const std::vector<GeneratedFile>& files) {
  std::vector<PlannedFile> list;
  for (const GeneratedFile& file : files)
    list.push_back({file.path, file.content, file.executable ? std::optional(true) : std::nullopt});
  return list;
}

std::vector<PlannedDeviation> describe_deviations(const std::vector<Deviation>& deviations) {
  std::vector<PlannedDeviation> list;
  for (const Deviation& each : deviations) list.push_back({each.key, each.asked, each.effective, if_any(each.reason)});
  return list;
}

std::optional<PlannedPlace> find_place(const PlannedRun& run, const std::vector<LayoutPlan>& layouts) {
  for (const LayoutPlan& plan : layouts)
    for (size_t i = 0; i < plan.layouts.size(); ++i)
      if (plan.framework == run.framework && plan.model == run.spec.model.name &&
          plan.layouts[i].strategy == run.spec.parallel.strategy)
        return PlannedPlace{static_cast<int64_t>(i) + 1, plan.layouts[i].step_seconds};
  return {};
}

std::vector<std::string> describe_problems(const std::vector<Problem>& problems) {
  std::vector<std::string> sentences;
  for (const Problem& problem : problems) sentences.push_back(to_string(problem));
  return sentences;
}

}  // namespace

MemoryForecast describe_forecast(const Forecast& forecast) {
  MemoryForecast described;
  if (!forecast.memory) {
    described.not_predicted = forecast.missing;
    return described;
  }
  described.memory_bytes = forecast.memory->total();
  described.bytes.emplace();
  for (const auto& part : forecast.memory->parts()) described.bytes->push_back(part);
  if (forecast.workload.shape.experts) described.expert_load = planner::load_of_fullest_rank(forecast.workload);
  if (!forecast.device) return described;
  if (forecast.device->ranks > 1) described.all_ranks_bytes = forecast.needed;
  described.device_bytes = forecast.device->bytes;
  described.device_source = forecast.device->source;
  described.fits = forecast.fits();
  return described;
}

PlannedTraining describe_planned(const PlannedRun& run, const Forecast& forecast,
                                 const std::vector<LayoutPlan>& layouts) {
  const LaunchPlan& plan = run.plan;
  return {.run = describe(run),
          .command = plan.command,
          .environment = plan.environment,
          .working_directory = plan.working_directory,
          .files = describe_files(plan.files),
          .log = plan.log_path,
          .steps_file = plan.steps_path,
          .deviations = describe_deviations(plan.deviations),
          .remarks = plan.remarks,
          .prediction = describe_forecast(forecast),
          .cleanup_command = plan.cleanup_command,
          .result = plan.result_path,
          .config_hash = run.config_hash,
          .default_choice = if_any(run.default_choice),
          .installation = run.installation,
          .framework_version = run.framework_version,
          .checked_against = if_any(list_checked(run)),
          .planned = find_place(run, layouts)};
}

RunReport describe_report(const SuiteReport& report, const std::vector<LayoutPlan>& layouts) {
  std::vector<LayoutRanking> rankings;
  for (const LayoutPlan& plan : layouts) rankings.push_back(rank_layouts(plan, report.outcomes));
  return {report.interrupted,
          report.outcomes,
          describe_problems(report.unavailable),
          if_any(describe_problems(report.skipped)),
          if_any(report.profiles),
          if_any(std::move(rankings))};
}

}  // namespace tprimat::suite::document

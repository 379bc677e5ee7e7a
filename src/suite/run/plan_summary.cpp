#include "run/plan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "run/version_notes.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

using Lines = std::vector<std::pair<const char*, std::string>>;  // label, text

std::string describe_model(const ModelSpec& model) {
  const ParameterCount count = count_parameters(model);
  const auto show = [](int64_t parameters) { return group_thousands(std::to_string(parameters)); };
  const std::string active = model.experts ? fmt::format(" ({} per token)", show(count.active())) : "";
  return fmt::format("{}{}: {} parameters{}, {} layers, hidden size {}", model.name,
                     model.full_name.empty() || model.full_name == model.name ? "" : " (" + model.full_name + ")",
                     show(count.total()), active, model.num_layers, model.hidden_size);
}

std::string describe_experts(const TrainSpec& spec) {
  const Experts& experts = *spec.model.experts;
  return fmt::format("{} of {} per token{}, {} routing{}", experts.per_token, experts.count,
                     experts.shared_ffn_hidden_size > 0 ? " and shared ones" : "",
                     enum_name(spec.routing.value_or(Routing::learned)),
                     spec.dispatcher ? fmt::format(", dispatcher {}", enum_name(*spec.dispatcher)) : "");
}

std::string describe_layout(const ParallelSpec& layout, int64_t nodes) {
  std::string text = fmt::format("TP {}, PP {}, ", layout.tensor, layout.pipeline);
  if (layout.virtual_pipeline > 1) text += fmt::format("VP {}, ", layout.virtual_pipeline);
  text += fmt::format("CP {}, DP {}, ", layout.context, layout.data);
  if (layout.expert) text += fmt::format("EP {}, ", *layout.expert);
  if (layout.expert_tensor) text += fmt::format("ETP {}, ", *layout.expert_tensor);
  if (layout.zero_stage > 0) text += fmt::format("ZeRO-{}, ", layout.zero_stage);
  if (layout.sequence_parallel) text += "SP, ";
  text.replace(text.size() - 2, 2, fmt::format(": {} rank{}", layout.ranks(), layout.ranks() == 1 ? "" : "s"));
  return nodes > 1 ? fmt::format("{} on {} nodes", text, nodes) : text;
}

std::string describe_batch(const TrainSpec& spec) {
  return fmt::format("MBS {} x GA {} x DP {} = GBS {}, sequences of {} tokens", spec.micro_batch_size,
                     spec.gradient_accumulation_steps(), spec.parallel.data, spec.global_batch_size,
                     spec.sequence_length);
}

std::string describe_rate(const OptimizerSpec& optimizer) {
  if (optimizer.schedule == ScheduleKind::constant) return fmt::format("{:g}, constant", optimizer.learning_rate);
  return fmt::format("{:g}, {} to {:g}", optimizer.learning_rate, enum_name(optimizer.schedule),
                     optimizer.min_learning_rate);
}

std::string describe_formats(const TrainSpec& spec) {
  std::string text = fmt::format("{}, recompute {}", enum_name(spec.precision), enum_name(spec.recompute));
  if (spec.offload) text += fmt::format(", offload {}", enum_name(*spec.offload));
  return text;
}

std::string print_size(const GeneratedFile& file) {
  const size_t bytes = file.content.size();
  return bytes < 1000 ? fmt::format("{} B", bytes) : format_si(static_cast<double>(bytes), "B");
}

// A line for each folder: "/out/runs/x: train_spec.json (1.2 kB), config.json (620 B)".
void add_files(Lines& lines, const LaunchPlan& plan) {
  std::vector<std::pair<std::string, std::string>> folders;  // in the order of their first files
  for (const GeneratedFile& file : plan.files) {
    const fs::path path = file.path;
    const std::string name = fmt::format("{} ({})", path.filename().string(), print_size(file));
    const std::string folder = path.parent_path().string();
    const auto known = std::ranges::find(folders, folder, &std::pair<std::string, std::string>::first);
    if (known == folders.end())
      folders.emplace_back(folder, name);
    else
      known->second += ", " + name;
  }
  for (const auto& [folder, names] : folders) lines.emplace_back("writes", folder + ": " + names);
}

Lines list_settings(const PlannedRun& run, const Forecast& known) {
  const TrainSpec& spec = run.spec;
  Lines lines = {{"model", describe_model(spec.model)},
                 {"layout", describe_layout(spec.parallel, run.request.launch.nodes)},
                 {"batch", describe_batch(spec)},
                 {"learning rate", describe_rate(spec.optimizer)},
                 {"warm-up", fmt::format("{} of {} steps", spec.optimizer.warmup_steps, spec.steps)},
                 {"precision", describe_formats(spec)},
                 {"data set", spec.data.dataset},
                 {"memory", describe_memory(known)}};
  if (spec.model.experts) lines.insert(lines.begin() + 1, {"experts", describe_experts(spec)});
  if (const std::string version = describe_version(run); !version.empty()) lines.emplace_back("version", version);
  for (const std::string& remark : run.plan.remarks) lines.emplace_back("note", remark);
  for (const Deviation& each : run.plan.deviations) lines.emplace_back("deviates", describe_deviation(each));
  for (const std::string& mount : run.plan.mounts) lines.emplace_back("mounts", mount);
  return lines;
}

// Repeated runs differ in their files only.
Lines list_lines(const PlannedRun& run, const Forecast& known) {
  Lines lines = run.run > 1 ? Lines{{"settings", "those of run 1"}} : list_settings(run, known);
  add_files(lines, run.plan);
  lines.emplace_back("result", run.plan.result_path);
  return lines;
}

}  // namespace

std::string render_summary(const PlannedRun& run, const Forecast& known) {
  std::string text = render_comment(describe(run));
  for (const auto& [label, line] : list_lines(run, known))
    text += render_comment(fmt::format("  {:<15}{}", label, line));
  return text;
}

std::string render_dry_run(const PlannedRun& run, const Forecast& known, bool whole) {
  const std::string summary = render_summary(run, known);
  if (!whole && !run.plan.by_hand.empty())
    return summary +
           render_comment(
               "The pods start from the files in this manifest; --verbose prints the commands of tprimat run itself.") +
           run.plan.by_hand;
  if (whole || run.plan.files.empty()) return summary + render_shell(run.plan);
  return summary +
         render_comment("The command reads these files; the same with --verbose prints them too, as a whole script.") +
         render_command(run.plan);
}

}  // namespace tprimat::suite

#include <fmt/format.h>

#include "text/format.h"
#include "why/pipeline_report.h"

namespace tprimat::results {
namespace {

constexpr size_t k_max_rows = 64;  // workers shown

TextTable worker_table(const PipelineReport& report) {
  TextTable table{{"stage", "replica", "forward", "backward", "bubble"}, {}, {0, 1, 2, 3, 4}};
  for (const PipelineWorker& worker : report.workers) {
    if (table.rows.size() == k_max_rows) break;
    table.rows.push_back({fmt::format("{}", worker.stage), fmt::format("{}", worker.dp_rank),
                          format_duration(worker.forward_seconds), format_duration(worker.backward_seconds),
                          format_percent(worker.bubble)});
  }
  return table;
}

std::string count_of(int64_t count, std::string_view what, std::string_view plural = "s") {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : plural);
}

void add_parts(const std::vector<StragglerPart>& parts, TextTable& table) {
  for (const StragglerPart& part : parts)
    if (part.slowdown >= 1.001) table.rows.push_back({part.name, fmt::format("{:.3f}", part.slowdown)});
}

}  // namespace

std::string render_pipeline(const PipelineReport& report) {
  const StragglerReport& found = report.stragglers;
  std::string text =
      fmt::format("Pipeline: {}, {}, {}, {} of {}\n", count_of(report.stages, "stage"),
                  count_of(report.replicas, "replica"), count_of(report.micro_batches, "micro-batch", "es"),
                  count_of(report.steps, "step"), format_duration(report.step_seconds));
  text += fmt::format("Bubble: {}; with equally fast workers {}\n\n", format_percent(report.bubble),
                      format_percent(report.balanced_bubble));
  text += render_text(worker_table(report));
  if (report.workers.size() > k_max_rows)
    text += fmt::format("... and {} more workers\n", report.workers.size() - k_max_rows);
  text += fmt::format("\nStep with equally fast workers: {}; as recorded, without delays of the host: {} ({:.3f} x)\n",
                      format_duration(found.ideal_seconds), format_duration(found.no_delay_seconds), found.slowdown);
  TextTable parts{{"slow part", "slowdown"}, {}, {1}};
  for (const auto* list : {&found.stages, &found.replicas, &found.operations}) add_parts(*list, parts);
  if (!parts.rows.empty()) text += "\n" + render_text(parts);
  if (found.last_stage_share)
    text +=
        fmt::format("\nShare of the slowdown: last stage {}, slowest workers {}\n",
                    format_percent(*found.last_stage_share), format_percent(found.slowest_workers_share.value_or(0)));
  for (const std::string& finding : report.findings) text += "\n" + finding + "\n";
  for (const std::string& note : report.notes) text += "\nnote: " + note + "\n";
  return text;
}

}  // namespace tprimat::results

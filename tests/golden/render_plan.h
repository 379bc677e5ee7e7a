#pragma once

#include <string>
#include <vector>

#include "launch/launch_plan.h"

// A launch as the goldens show it.
namespace tprimat {

// A flag and its values on a line.
inline std::string render_command(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : word.starts_with("--") ? "\n  " : " ") + word;
  return text + "\n";
}

// Python that is part of this program is named and not shown.
inline std::string render_file(const suite::GeneratedFile& file) {
  if (file.path.ends_with(".py")) return "-- " + file.path + "\n";
  return "-- " + file.path + ":\n" + file.content + (file.content.ends_with('\n') ? "" : "\n");
}

inline std::string render_plan(const suite::LaunchPlan& plan) {
  std::string text = "cd " + plan.working_directory + "\n";
  for (const auto& [name, value] : plan.environment) text += name + "=" + value + "\n";
  text += render_command(plan.command);
  text += "steps: " + (plan.steps_path.empty() ? "in the log" : plan.steps_path) + "\n";
  for (const std::string& remark : plan.remarks) text += "remark: " + remark + "\n";
  for (const suite::Deviation& each : plan.deviations)
    text += "deviates: " + each.key + ": " + each.asked + " becomes " + each.effective +
            (each.reason.empty() ? "" : ", because " + each.reason) + "\n";
  for (const suite::GeneratedFile& file : plan.files) text += render_file(file);
  return text;
}

}  // namespace tprimat

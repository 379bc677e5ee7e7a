#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "config/load.h"
#include "launch/frameworks.h"

// What the goldens of launches share: a request, and its plan as they show it.
namespace tprimat {

// One of the experiments beside the goldens.
inline suite::Experiment load_launch_experiment(const char* file) {
  suite::ConfigSources sources;
  sources.path = TPRIMAT_GOLDEN_DIR "/launch/" + std::string(file);
  return suite::load_experiment(sources).experiment;
}

struct AskedLaunch {
  std::string model;
  Platform platform = Platform::nvd;
  std::string strategy;
};

inline suite::LaunchRequest make_request(const suite::Experiment& experiment, const suite::FrameworkModule& module,
                                         const AskedLaunch& asked) {
  const suite::ModelEntry& entry = *experiment.find_model_entry(asked.model);
  suite::LaunchRequest request;
  request.spec = suite::make_train_spec(experiment, asked.platform, asked.model, asked.strategy);
  request.platform = asked.platform;
  request.settings = experiment.platforms.at(asked.platform).settings;
  request.model_notes = {entry.tokenizer_path.value_or(""), entry.nemo_recipe.value_or(""),
                         entry.primus_config.value_or("")};
  request.checkout = suite::checkout_of(module, experiment.paths, asked.platform);
  request.paths = {"/out/runs/x", "/out/x.log", "/out/x.json", "/here"};
  request.own_program = "/usr/bin/tprimat";
  return request;
}

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

inline std::string plan_or_refusal(const suite::FrameworkModule& module, const suite::LaunchRequest& request) {
  try {
    suite::require_framework(module.id, request.platform);
    return render_plan(suite::plan_launch(module, request));
  } catch (const Error& error) {
    std::string text;
    for (const Problem& problem : error.problems()) text += "refused: " + to_string(problem) + "\n";
    return text;
  }
}

}  // namespace tprimat

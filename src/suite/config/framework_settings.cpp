#include <fmt/format.h>

#include "config/draft.h"
#include "config/values.h"
#include "text/choice.h"
#include "text/format.h"

namespace tprimat::suite {
namespace {

void check_strategy(Draft& draft, const std::string& strategy, const std::string& path) {
  std::vector<std::string> known = {"single"};
  for (const auto& [name, layouts] : draft.raw.parallelism.entries) known.push_back(name);
  for (const std::string& name : known)
    if (name == strategy) return;
  draft.fail(path, fmt::format("parallelism has no strategy '{}'", printable(strategy.substr(0, 40))),
             suggest_word(strategy, known));
}

// A word of a command line, which is also a line of a shell script.
void check_arguments(Draft& draft, const std::vector<std::string>& words, const std::string& path) {
  for (const std::string& word : words)
    if (word.empty() || printable(word) != word)
      draft.fail(path, fmt::format("'{}' in {} is no argument", printable(word.substr(0, 40)), path),
                 "arguments are not empty and hold no control characters");
}

void check_on_platforms(Draft& draft, Precision precision, const std::string& path) {
  for (const auto& [platform, setup] : draft.experiment.platforms)
    if (draft.is_sound(path)) check_precision(draft, platform, setup.device_model, precision, path);
}

// A word of a container command.
void check_image_word(Draft& draft, const std::string& word, const std::string& path) {
  if (!draft.is_sound(path) || (!word.empty() && !word.starts_with('-') && printable(word) == word)) return;
  draft.fail(path, fmt::format("{} cannot be '{}'", path, printable(word.substr(0, 40))),
             "it must not be empty, begin with - or contain control characters");
}

void check_installation(Draft& draft, const raw::InstallationSection& from, const std::string& path) {
  if (!draft.is_sound(path)) return;
  if (!from.folder.value_or("").empty() || from.image) {
    if (from.image) check_image_word(draft, *from.image, path + ".image");
    if (from.python) check_image_word(draft, *from.python, path + ".python");
  } else {
    draft.fail(path, path + " states neither a folder nor an image", "write the folder, or  {image: NAME}");
  }
  if (from.image && from.folder && !from.folder->starts_with('/'))
    draft.fail(path + ".folder", fmt::format("{}.folder is in the image, so it must begin with /", path));
  if (from.python && !from.image)
    draft.fail(path + ".python", fmt::format("{}.python is a path in an image, but there is no image", path),
               "state image too, or leave python out");
}

void resolve_installations(Draft& draft, const std::string& path, const raw::FrameworkSection& from,
                           std::vector<InstallationEntry>& to) {
  for (const auto& [label, each] : from.installations.entries) {
    check_installation(draft, each, join_path(path, label));
    to.push_back({label, each.folder.value_or(""), each.image.value_or(""), each.python.value_or("")});
  }
  if (path == "frameworks.native.installations" && !to.empty())
    draft.fail(path, "the native trainer is part of this program and has no other installation",
               "run each build of tprimat with its own --output, then compare the two folders");
}

void resolve_framework(Draft& draft, const std::string& name, const raw::FrameworkSection& from) {
  const std::string path = join_path("frameworks", name);
  FrameworkSetup& to = draft.experiment.framework_setups[*parse_enum<Framework>(name)];
  to.description = from.description.value_or("");
  to.enabled = from.enabled.value_or(true);
  to.strategy = from.strategy;
  to.precision = from.precision;
  to.recompute = from.recompute;
  to.moments = from.optimizer.moments;
  to.master_weights = from.optimizer.master_weights;
  to.offload = from.offload;
  to.arguments = from.arguments.value_or(std::vector<std::string>{});
  if (to.strategy && draft.is_sound(path + ".strategy")) check_strategy(draft, *to.strategy, path + ".strategy");
  if (to.precision) check_on_platforms(draft, *to.precision, path + ".precision");
  check_arguments(draft, to.arguments, path + ".arguments");
  resolve_installations(draft, path + ".installations", from, to.installations);
}

}  // namespace

void resolve_frameworks(Draft& draft) {
  for (const auto& [name, section] : draft.raw.frameworks.entries)
    if (parse_enum<Framework>(name)) resolve_framework(draft, name, section);
  const std::string chosen = "experiment.frameworks";
  for (const FrameworkChoice& choice : draft.experiment.frameworks)
    if (const auto problem = find_unknown_installation(draft.experiment, choice, origin_of(draft.tree, chosen)))
      draft.diagnosis.add_error(*problem, chosen);
}

}  // namespace tprimat::suite

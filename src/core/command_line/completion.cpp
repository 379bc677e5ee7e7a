#include "command_line/completion.h"

#include <algorithm>

namespace tprimat {
namespace {

void add_scopes(const CommandInfo& command, const CommandScope& above, std::vector<CommandScope>& scopes) {
  CommandScope scope;
  if (above.command != nullptr) scope.path = above.path.empty() ? command.name : above.path + " " + command.name;
  scope.command = &command;
  scope.options = command.options;
  const std::vector<std::string> own = scope.option_names();
  if (command.inherits)
    for (const OptionInfo& option : above.options)
      if (std::find(own.begin(), own.end(), option.names.back()) == own.end()) scope.options.push_back(option);
  scopes.push_back(scope);
  for (const CommandInfo& part : command.parts) add_scopes(part, scope, scopes);
}

bool names_kind(const std::string& value, const char* kind) { return value.find(kind) != std::string::npos; }

}  // namespace

Offer offer_for(const OptionInfo& option) {
  if (!option.choices.empty()) return option.list ? Offer::list : Offer::words;
  for (const char* kind : {"FILE", "TABLE", "PREFIX", "RUN"})
    if (names_kind(option.value, kind)) return Offer::files;
  return names_kind(option.value, "DIR") ? Offer::folders : Offer::nothing;
}

Offer offer_for_arguments(const CommandInfo& command, std::vector<std::string>& words) {
  for (const OptionInfo& argument : command.arguments) {
    const Offer offer = offer_for(argument);
    if (offer == Offer::nothing) continue;
    words = argument.choices;
    return offer;
  }
  return Offer::nothing;
}

std::vector<std::string> CommandScope::option_names() const {
  std::vector<std::string> names;
  for (const OptionInfo& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> CommandScope::part_names() const {
  std::vector<std::string> names;
  for (const CommandInfo& part : command->parts) names.push_back(part.name);
  return names;
}

std::vector<CommandScope> list_scopes(const CommandInfo& program) {
  std::vector<CommandScope> scopes;
  add_scopes(program, {}, scopes);
  return scopes;
}

std::string render_completion(Shell shell, const CommandInfo& program) {
  switch (shell) {
    case Shell::bash: return render_bash_completion(program);
    case Shell::zsh: return render_zsh_completion(program);
    case Shell::fish: return render_fish_completion(program);
  }
  return "";
}

}  // namespace tprimat

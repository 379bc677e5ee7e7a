#include <fmt/format.h>

#include <algorithm>

#include "command_line/completion.h"
#include "text/format.h"

namespace tprimat {
namespace {

std::string quote_zsh(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string escape(const std::string& text, std::string_view special) {
  std::string escaped;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string function_name(const CommandScope& scope) {
  std::string name = scope.path.empty() ? "_tprimat" : "_tprimat_" + scope.path;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

std::string zsh_action(Offer offer, const std::vector<std::string>& words) {
  switch (offer) {
    case Offer::words: return "(" + join(words, " ") + ")";
    case Offer::list: return "_sequence compadd - " + join(words, " ");
    case Offer::files: return "_files";
    case Offer::folders: return "_files -/";
    case Offer::nothing: break;
  }
  return " ";
}

// '(-q --quiet)'{-q,--quiet}'[Print only errors]', or '--config=[Configuration]:FILE:_files'
std::string option_spec(const OptionInfo& option) {
  const std::string doc = "[" + escape(option.doc, "\\[]:") + "]";
  std::string value;
  if (!option.value.empty())
    value = fmt::format("{}{}:{}", option.optional_value ? "::" : ":", escape(option.value, "\\:"),
                        zsh_action(offer_for(option), option.choices));
  std::vector<std::string> names = option.names;
  for (std::string& name : names)
    if (!option.value.empty()) name += name.starts_with("--") ? "=" : "+";
  const std::string many = option.many ? "*" : "";
  if (names.size() == 1) return quote_zsh(many + names[0] + doc + value);
  const std::string once = option.many ? "" : "(" + join(option.names, " ") + ")";
  return fmt::format("{}{{{}}}{}", quote_zsh(once + many), join(names, ","), quote_zsh(doc + value));
}

std::string argument_specs(const CommandScope& scope) {
  if (!scope.command->parts.empty()) return " \\\n    '1: :->command' '*:: :->rest'";
  std::string specs;
  for (const OptionInfo& argument : scope.command->arguments)
    specs += " \\\n    " + quote_zsh(fmt::format("{}:{}:{}", argument.many ? "*" : "", escape(argument.value, "\\:"),
                                                 zsh_action(offer_for(argument), argument.choices)));
  return specs;
}

std::string part_cases(const CommandScope& scope) {
  if (scope.command->parts.empty()) return "";
  std::string words, cases;
  for (const CommandInfo& part : scope.command->parts) {
    words += " " + quote_zsh(escape(part.name, "\\:") + ":" + part.summary);
    cases += fmt::format("        {0}) {1}_{0} ;;\n", part.name, function_name(scope));
  }
  std::vector<std::string> choices;
  const Offer offer = offer_for_arguments(*scope.command, choices);
  const std::string files = offer == Offer::nothing ? "" : "\n      _files";
  return fmt::format(
      "  case $state in\n    command)\n      local -a parts=({})\n      _describe command parts{} ;;\n    rest)\n"
      "      case $line[1] in\n{}{}      esac ;;\n  esac\n",
      words, files, cases, files.empty() ? "" : "        *) _files ;;\n");
}

std::string scope_function(const CommandScope& scope) {
  std::string specs;
  for (const OptionInfo& option : scope.options) specs += " \\\n    " + option_spec(option);
  return fmt::format(
      "{}() {{\n  local state line curcontext=$curcontext\n  typeset -A opt_args\n  _arguments -C -s :{}{} && return\n"
      "{}}}\n\n",
      function_name(scope), specs, argument_specs(scope), part_cases(scope));
}

}  // namespace

std::string render_zsh_completion(const CommandInfo& program) {
  std::string functions;
  for (const CommandScope& scope : list_scopes(program)) functions += scope_function(scope);
  return fmt::format(
      "#compdef {0}\n# Completion of {0} in zsh, as `{0} completion zsh` prints it.\n\n{1}"
      "if [ \"$funcstack[1]\" = _tprimat ]; then\n  _tprimat \"$@\"\nelse\n  compdef _tprimat {0}\nfi\n",
      program.name, functions);
}

}  // namespace tprimat

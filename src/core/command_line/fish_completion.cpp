#include <fmt/format.h>

#include "command_line/completion.h"
#include "text/format.h"

namespace tprimat {
namespace {

constexpr const char* k_fish_functions = R"(
function __tprimat_at --description 'whether the command line has come to this command'
    set -l at
    set -l due no
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if test $due = yes
            set due no
        else if test "$word" = --
            break
        else if string match -q -- '-*' $word
            contains -- "$at $word" $__tprimat_valued; and set due yes
        else if contains -- (string trim -- "$at $word") $__tprimat_commands
            set at (string trim -- "$at $word")
        end
    end
    test "$at" = "$argv"
end

function __tprimat_list --description 'words for the next part of a list, separated by commas'
    set -l before (string match -r '^.*,' -- (string replace -r '^--[^=]*=' '' -- (commandline -ct)))
    for word in $argv
        echo "$before$word"
    end
end
)";

std::string quote_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string quote_all(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += " " + quote_fish(word);
  return text;
}

// Of a value: -r demands one, -x demands one that is no file.
std::string fish_offer(Offer offer, const std::vector<std::string>& words) {
  switch (offer) {
    case Offer::words: return " -x -a " + quote_fish(join(words, " "));
    case Offer::list: return " -x -a " + quote_fish("(__tprimat_list" + quote_all(words) + ")");
    case Offer::files: return " -r -F";
    case Offer::folders: return " -x -a '(__fish_complete_directories)'";
    case Offer::nothing: break;
  }
  return " -x";
}

std::string option_line(const std::string& start, const OptionInfo& option) {
  std::string line = start;
  for (const std::string& name : option.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (option.optional_value)
    line += " -F";
  else if (!option.value.empty())
    line += fish_offer(offer_for(option), option.choices);
  return fmt::format("{} -d {}\n", line, quote_fish(option.doc));
}

std::string scope_lines(const CommandScope& scope, const std::string& name) {
  const std::string start = fmt::format("complete -c {} -n {}", name, quote_fish("__tprimat_at " + scope.path));
  std::string lines;
  for (const CommandInfo& part : scope.command->parts)
    lines += fmt::format("{} -a {} -d {}\n", start, part.name, quote_fish(part.summary));
  std::vector<std::string> words;
  const Offer offer = offer_for_arguments(*scope.command, words);
  if (offer == Offer::files || offer == Offer::folders) lines += start + " -F\n";
  if (offer == Offer::words) lines += fmt::format("{} -a {}\n", start, quote_fish(join(words, " ")));
  for (const OptionInfo& option : scope.options) lines += option_line(start, option);
  return lines;
}

}  // namespace

std::string render_fish_completion(const CommandInfo& program) {
  std::vector<std::string> commands, valued;
  std::string lines;
  const std::string name = quote_fish(program.name);
  for (const CommandScope& scope : list_scopes(program)) {
    if (!scope.path.empty()) commands.push_back(scope.path);
    for (const OptionInfo& option : scope.options)
      if (!option.value.empty() && !option.optional_value)
        for (const std::string& each : option.names) valued.push_back(scope.path + " " + each);
    lines += scope_lines(scope, name);
  }
  return fmt::format(
      "# Completion of {0} in fish, as `{0} completion fish` prints it.\n\n"
      "set -g __tprimat_commands{1}\nset -g __tprimat_valued{2}\n{3}\ncomplete -c {4} -f\n{5}",
      program.name, quote_all(commands), quote_all(valued), k_fish_functions, name, lines);
}

}  // namespace tprimat

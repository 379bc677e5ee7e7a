#include <fmt/format.h>

#include "command_line/completion.h"
#include "text/format.h"

namespace tprimat {
namespace {

// Finds the command and the option whose value is due, then offers what stands in the tables above it. Bash cuts
// --name=value at the equals sign.
constexpr const char* k_bash_function = R"(
_tprimat_offer() {  # kind, words, current word, text before it
  local word
  case $1 in
    words) while IFS= read -r word; do COMPREPLY+=("$4$word"); done < <(compgen -W "$2" -- "$3") ;;
    list)
      local before=
      [[ $3 == *,* ]] && before=${3%,*},
      while IFS= read -r word; do COMPREPLY+=("$4$before$word"); done < <(compgen -W "$2" -- "${3##*,}") ;;
    files | folders)
      local action=-f
      [[ $1 == folders ]] && action=-d
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do COMPREPLY+=("$4$word"); done < <(compgen $action -- "$3") ;;
  esac
}

_tprimat() {
  local current=${COMP_WORDS[COMP_CWORD]} command='' option='' due='' ended='' before=''
  local i word options parts kind words optional
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ -z $ended && $word == '=' ]]; then
      due=${option:-=}
    elif [[ -n $due ]]; then
      due='' option=''
    elif [[ -z $ended && $word == '--' ]]; then
      ended=yes
    elif [[ -z $ended && $word == -* ]]; then
      option=$word
      _tprimat_value "$command" "$word"
      [[ -n $kind && -z $optional ]] && due=$word
    else
      option=''
      _tprimat_command "$command"
      [[ -z $ended && " $parts " == *" $word "* ]] && command=${command:+$command }$word
    fi
  done
  if [[ -z $ended && $current == '=' ]]; then
    due=${option:-=} current=''
  elif [[ -z $ended && -z $due && $current == --*=* ]]; then
    due=${current%%=*} before=${current%%=*}= current=${current#*=}
  fi
  if [[ -n $due ]]; then
    _tprimat_value "$command" "$due"
    _tprimat_offer "$kind" "$words" "$current" "$before"
    return
  fi
  _tprimat_command "$command"
  if [[ -z $ended && $current == -* ]]; then
    _tprimat_offer words "$options" "$current" ''
  else
    [[ -z $ended ]] && _tprimat_offer words "$parts" "$current" ''
    _tprimat_offer "$kind" "$words" "$current" ''
  fi
}
)";

const char* bash_kind(Offer offer) {
  switch (offer) {
    case Offer::words: return "words";
    case Offer::list: return "list";
    case Offer::files: return "files";
    case Offer::folders: return "folders";
    case Offer::nothing: break;
  }
  return "nothing";
}

std::string assign(const char* name, const std::vector<std::string>& words) {
  return words.empty() ? "" : fmt::format(" {}={}", name, quote_shell(join(words, " ")));
}

std::string value_rows(const CommandScope& scope) {
  std::string rows;
  for (const OptionInfo& option : scope.options) {
    if (option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(quote_shell(scope.path + " " + name));
    rows += fmt::format("    {}) kind={}{}{} ;;\n", join(patterns, " | "), bash_kind(offer_for(option)),
                        assign("words", option.choices), option.optional_value ? " optional=yes" : "");
  }
  return rows;
}

std::string command_row(const CommandScope& scope) {
  std::vector<std::string> words;
  const Offer offer = offer_for_arguments(*scope.command, words);
  const std::string pattern = scope.path.empty() ? "''" : quote_shell(scope.path);
  return fmt::format("    {}) kind={}{}{}{} ;;\n", pattern, bash_kind(offer), assign("words", words),
                     assign("options", scope.option_names()), assign("parts", scope.part_names()));
}

}  // namespace

std::string render_bash_completion(const CommandInfo& program) {
  std::string values, commands;
  for (const CommandScope& scope : list_scopes(program)) values += value_rows(scope), commands += command_row(scope);
  const std::string name = quote_shell(program.name);
  return fmt::format(
      "# Completion of {0} in bash, as `{0} completion bash` prints it.\n\n"
      "_tprimat_value() {{  # command, option: what its value may be\n"
      "  kind='' words='' optional=''\n  case \"$1 $2\" in\n{1}  esac\n}}\n\n"
      "_tprimat_command() {{  # command: its options, its parts, and what its arguments may be\n"
      "  kind='' words='' options='' parts=''\n  case $1 in\n{2}  esac\n}}\n{3}\ncomplete -F _tprimat {0}\n",
      name, values, commands, k_bash_function);
}

}  // namespace tprimat

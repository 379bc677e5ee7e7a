#include "cli/parse_failure.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/parse_choice.h"

namespace tprimat {
namespace {

// The command or part that the command line named last.
const CLI::App& named_part(const CLI::App& program) {
  const CLI::App* part = &program;
  while (!part->get_subcommands().empty()) part = part->get_subcommands().front();
  return *part;
}

std::string command_name(const CLI::App& part) {
  return part.get_parent() == nullptr ? part.get_name() : command_name(*part.get_parent()) + " " + part.get_name();
}

std::vector<std::string> option_names(const CLI::App& part) {
  std::vector<std::string> names;
  for (const CLI::Option* option : part.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  if (part.get_fallthrough() && part.get_parent() != nullptr)
    for (std::string& name : option_names(*part.get_parent())) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> part_names(const CLI::App& part) {
  std::vector<std::string> names;
  for (const CLI::App* each : part.get_subcommands({})) names.push_back(each->get_name());
  return names;
}

std::string suggest_option(const CLI::App& part, const std::string& name) {
  if (part.get_name() == "export" && name == "--history")
    return "name the directory: export DIR; tprimat compare --history DIR --csv gives one line a point; ";
  return suggest_word(name, option_names(part));
}

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// Nothing where every word was taken.
std::string explain_unknown_word(const CLI::App& program) {
  const CLI::App& part = named_part(program);
  std::vector<std::string> words = program.remaining(true);
  words.erase(std::find(words.begin(), words.end(), "--"), words.end());
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  const std::vector<std::string> parts = part_names(part);
  if (option != words.end() && (parts.empty() || option == words.begin() || words.size() == 1)) {
    const std::string name = option->substr(0, option->find('='));
    return fmt::format("{} has no option '{}'\n  {}", command_name(part), printable(name), suggest_option(part, name));
  }
  if (words.empty()) return "";
  const std::string& word = words.front();
  if (!parts.empty())
    return fmt::format("unknown command '{}' of {}; its commands are {}\n  {}", printable(word), command_name(part),
                       fmt::join(parts, ", "), suggest_word(word, parts));
  return fmt::format("{} does not expect '{}'\n  ", command_name(part), printable(word));
}

// CLI11: "Could not convert: --tokens = 1e30". An option with a range says so itself.
std::string explain_conversion(const std::string& message) {
  constexpr std::string_view start = "Could not convert: ", middle = " = ";
  const size_t at = message.find(middle);
  if (!message.starts_with(start) || at == std::string::npos) return message;
  return fmt::format("{}: '{}' is not a number that it takes", message.substr(start.size(), at - start.size()),
                     printable(message.substr(at + middle.size(), 64)));
}

}  // namespace

std::string explain_parse_failure(const CLI::App& program, const CLI::ParseError& error) {
  const int what = error.get_exit_code();
  const bool is_of_words = what == static_cast<int>(CLI::ExitCodes::ExtrasError) ||  // or a slip left them out
                           what == static_cast<int>(CLI::ExitCodes::RequiredError);
  std::string text = is_of_words ? explain_unknown_word(program) : "";
  if (text.empty()) text = explain_conversion(error.what()) + "\n  ";
  if (text.ends_with('?')) text += " ";
  return fmt::format("{}see {} --help", text, command_name(named_part(program)));
}

}  // namespace tprimat

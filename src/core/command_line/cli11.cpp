#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "command_line/options.h"
#include "command_line/suggest_name.h"
#include "command_line/value_checks.h"
#include "text/format.h"

// The one source that compiles CLI11.

namespace tprimat {
namespace {

class HelpLayout : public CLI::Formatter {
 public:
  // The checks have no descriptions, which CLI11 would append to the kind of value.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string kind = option->get_type_name();
    return option->get_type_size() == 0 || kind.empty() ? "" : " " + kind;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (option->get_required()) text += " (required)";
    if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ")";
    return text;
  }
};

// The last command or part that the command line names.
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

// A word of the command line in a message: the start of a long one.
std::string shown(const std::string& word) {
  constexpr size_t k_max_shown = 64;
  return printable(word.size() <= k_max_shown ? word : word.substr(0, k_max_shown) + "...");
}

std::string suggest_option(const CLI::App& part, const std::string& name) {
  if (part.get_name() == "export" && name == "--history")
    return "name the directory: export DIR; tprimat compare --history DIR --csv prints one line per point; ";
  const std::string suggestion = suggest_name(name, option_names(part));
  if (!suggestion.empty() || part.get_parent() != nullptr) return suggestion;
  return fmt::format("options follow their command, as in {} COMMAND {}; ", part.get_name(), shown(name));
}

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

// Empty if every word was parsed.
std::string explain_unknown_word(const CLI::App& program) {
  const CLI::App& part = named_part(program);
  std::vector<std::string> words = program.remaining(true);
  words.erase(std::find(words.begin(), words.end(), "--"), words.end());
  const auto option = std::find_if(words.begin(), words.end(), is_option);
  const std::vector<std::string> parts = part_names(part);
  if (option != words.end() && (parts.empty() || option == words.begin() || words.size() == 1)) {
    const std::string name = option->substr(0, option->find('='));
    const std::vector<std::string> names = option_names(part);
    if (std::find(names.begin(), names.end(), name) != names.end())
      return fmt::format("{0} must follow the command: {1} {0}\n  ", name, command_name(part));
    return fmt::format("{} has no option '{}'\n  {}", command_name(part), shown(name), suggest_option(part, name));
  }
  if (words.empty()) return "";
  const std::string& word = words.front();
  if (!parts.empty())
    return fmt::format("unknown command '{}' of {}; its commands are {}\n  {}", shown(word), command_name(part),
                       join(parts, ", "), suggest_name(word, parts));
  return fmt::format("{} does not expect '{}'\n  ", command_name(part), shown(word));
}

// CLI11: "Could not convert: --tokens = 1e30". Options with a range have their own message.
std::string explain_conversion(const std::string& message) {
  constexpr std::string_view start = "Could not convert: ", middle = " = ";
  const size_t at = message.find(middle);
  if (!message.starts_with(start) || at == std::string::npos) return message;
  return fmt::format("{}: '{}' is not a valid number", message.substr(start.size(), at - start.size()),
                     printable(message.substr(at + middle.size(), 64)));
}

// An unknown command or option with the nearest known one, or CLI11's message; with a pointer to --help.
std::string explain_parse_failure(const CLI::App& program, const CLI::ParseError& error) {
  const int what = error.get_exit_code();
  const bool is_of_words = what == static_cast<int>(CLI::ExitCodes::ExtrasError) ||  // or a typo made them missing
                           what == static_cast<int>(CLI::ExitCodes::RequiredError);
  std::string text = is_of_words ? explain_unknown_word(program) : "";
  if (text.empty()) text = explain_conversion(error.what()) + "\n  ";
  if (text.ends_with('?')) text += " ";
  return fmt::format("{}see {} --help", text, command_name(named_part(program)));
}

bool takes_value(const CLI::Option& option) { return option.get_type_size() != 0; }

OptionInfo describe_option(const CLI::Option& option, const std::deque<Option>& declared) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (info.names.empty()) info.names.push_back(option.get_name(true));
  if (takes_value(option)) info.value = option.get_type_name();
  info.doc = option.get_description();
  info.default_text = option.get_default_str();
  info.required = option.get_required();
  info.optional_value = takes_value(option) && option.get_items_expected_min() == 0;
  info.list = option.get_delimiter() != '\0';
  info.many = takes_value(option) && option.get_items_expected_max() > 1;
  for (const Option& each : declared)
    if (each.stands_for(&option) && !each.known_choices().empty()) info.choices = each.known_choices();
  return info;
}

}  // namespace

Option* Option::choices(std::vector<std::string> words) { return choices_ = std::move(words), this; }
Option* Option::choose_from(const std::vector<std::string>& words) { return check(one_of(words))->choices(words); }
Option* Option::type_name(const std::string& name) { return inner_->type_name(name), this; }
Option* Option::required() { return inner_->required(), this; }
Option* Option::check(const Check& check) { return inner_->check(CLI::Validator(check, "")), this; }
Option* Option::transform(const Check& change) { return inner_->transform(CLI::Validator(change, "")), this; }
Option* Option::delimiter(char between) { return inner_->delimiter(between), this; }
Option* Option::expected(int fewest, int most) { return inner_->expected(fewest, most), this; }
Option* Option::allow_extra_args(bool allow) { return inner_->allow_extra_args(allow), this; }
Option* Option::take_last() { return inner_->take_last(), this; }
Option* Option::needs(Option* other) { return inner_->needs(other->inner_), this; }
Option* Option::excludes(Option* other) { return inner_->excludes(other->inner_), this; }
Option* Option::capture_default_str() { return inner_->capture_default_str(), this; }
Option* Option::default_str(const std::string& text) { return inner_->default_str(text), this; }
Option* Option::group(const std::string& name) { return inner_->group(name), this; }
size_t Option::count() const { return inner_->count(); }

template <class T>
Option* CommandLine::add_option(const std::string& name, T& target, const std::string& doc) {
  return &options_.emplace_back(inner_.add_option(name, target, doc));
}
template Option* CommandLine::add_option(const std::string&, std::string&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::vector<std::string>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, int&, const std::string&);
template Option* CommandLine::add_option(const std::string&, int64_t&, const std::string&);
template Option* CommandLine::add_option(const std::string&, uint64_t&, const std::string&);
template Option* CommandLine::add_option(const std::string&, double&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<int64_t>&, const std::string&);
template Option* CommandLine::add_option(const std::string&, std::optional<double>&, const std::string&);

Option* CommandLine::add_flag(const std::string& name, bool& target, const std::string& doc) {
  return &options_.emplace_back(inner_.add_flag(name, target, doc));
}

Option* CommandLine::get_option(const std::string& name) { return &options_.emplace_back(inner_.get_option(name)); }

CommandLine* CommandLine::add_subcommand(const std::string& name, const std::string& summary) {
  return &parts_.emplace_back(*inner_.add_subcommand(name, summary));
}

CommandLine* CommandLine::footer(const std::string& text) { return inner_.footer(text), this; }
std::string CommandLine::footer() const { return inner_.get_footer(); }
CommandLine* CommandLine::fallthrough() { return inner_.fallthrough(), this; }
CommandLine* CommandLine::require_subcommand(int fewest, int most) {
  return inner_.require_subcommand(fewest, most), this;
}
CommandLine* CommandLine::callback(const std::function<void()>& work) { return inner_.callback(work), this; }
bool CommandLine::parsed() const { return inner_.parsed(); }
size_t CommandLine::count(const std::string& option) const { return inner_.count(option); }

CommandInfo CommandLine::describe() const {
  CommandInfo info{inner_.get_name(), inner_.get_description(), inner_.get_footer(), {}, {}, {}, {}};
  info.inherits = inner_.get_parent() != nullptr && inner_.get_fallthrough();
  for (const CLI::Option* option : inner_.get_options())
    if (!option->get_group().empty())
      (option->get_positional() ? info.arguments : info.options).push_back(describe_option(*option, options_));
  for (const CommandLine& part : parts_)
    if (!part.inner_.get_group().empty()) info.parts.push_back(part.describe());
  return info;
}

std::string CommandLine::text(const std::string& option) const { return inner_.get_option(option)->as<std::string>(); }

ProgramParser::ProgramParser(const ProgramTexts& texts)
    : inner_(std::make_unique<CLI::App>(texts.purpose, texts.name)), root_(*inner_) {
  inner_->set_version_flag("--version", texts.version);
  inner_->require_subcommand(1);
  inner_->footer(texts.footer);
  inner_->formatter(std::make_shared<HelpLayout>());
}

ProgramParser::~ProgramParser() = default;

ParsedWords ProgramParser::parse(int argc, char** argv) {
  try {
    inner_->parse(argc, argv);
    return {true, "", ""};
  } catch (const CLI::ParseError& failure) {
    if (failure.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success))
      return {false, "", explain_parse_failure(*inner_, failure)};
    std::ostringstream text;
    inner_->exit(failure, text, text);
    return {false, text.str(), ""};
  }
}

}  // namespace tprimat

#include "command_line/manual_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/printable.h"
#include "command_line/completion.h"
#include "text/format.h"
#include "text/words.h"

namespace tprimat {
namespace {

const char* explain_status(ExitStatus status) {
  switch (status) {
    case ExitStatus::done: return "Done.";
    case ExitStatus::work_failed: return "Some work failed, a result is invalid, or stdout cannot be written.";
    case ExitStatus::usage: return "Wrong usage or configuration, or an unreadable file; nothing was started.";
    case ExitStatus::not_comparable: return "Compared, but some runs are not comparable and get no verdict.";
    case ExitStatus::missing_component: return "A required component is missing; the message names the remedy.";
    case ExitStatus::gate_failed: return "A regression gate failed.";
    case ExitStatus::inconclusive: return "A gate asked for an answer, but the difference is within the noise.";
    case ExitStatus::interrupted: return "Stopped by Ctrl-C, SIGTERM or SIGHUP.";
  }
  return "";
}

// roff takes \ and leading . and ' as its own; a plain - would become a hyphen, which cannot be pasted.
std::string escape_roff(const std::string& text) {
  std::string escaped;
  std::string_view rest = text;
  while (!rest.empty()) {
    const Utf8Character character = decode_utf8(rest);
    const size_t bytes = std::max<size_t>(1, character.bytes);
    const bool starts_line = escaped.empty() || escaped.back() == '\n';
    if (starts_line && (rest[0] == '.' || rest[0] == '\'')) escaped += "\\&";
    if (bytes > 1)
      escaped += fmt::format("\\[u{:04X}]", static_cast<uint32_t>(character.code));
    else
      escaped += rest[0] == '\\' ? "\\e" : rest[0] == '-' ? "\\-" : std::string(1, rest[0]);
    rest.remove_prefix(bytes);
  }
  return escaped;
}

std::string bold(const std::string& text) { return "\\fB" + escape_roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escape_roff(text) + "\\fR"; }

std::string title_case(std::string text) {
  for (char& c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
  return text;
}

// A choice that the sentence does not name.
std::string missing_choices(const OptionInfo& option) {
  const bool named = std::all_of(option.choices.begin(), option.choices.end(),
                                 [&](const std::string& word) { return option.doc.find(word) != std::string::npos; });
  return named ? "" : (option.list ? ". Words: " : ". One of ") + join(option.choices, ", ");
}

std::string end_sentence(const std::string& text) {
  return text.empty() || text.ends_with('?') || text.ends_with('.') ? text : text + ".";
}

std::string render_option(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty()) names += " " + italic(option.value);
  std::string doc = option.doc;
  if (option.required) doc += " (required)";
  if (!option.default_text.empty()) doc += fmt::format(" (default: {})", option.default_text);
  doc += missing_choices(option);
  return fmt::format(".TP\n{}\n{}\n", names, doc.empty() ? "As for the command above." : escape_roff(doc + "."));
}

std::string render_argument(const OptionInfo& argument) {
  OptionInfo named = argument;
  named.value.clear();
  return render_option(named);
}

std::string render_synopsis(const std::string& name, const CommandInfo& command) {
  std::string text = bold(name);
  if (!command.options.empty()) text += " [" + italic("OPTION") + "]...";
  for (const OptionInfo& argument : command.arguments) {
    const std::string word = italic(argument.names.front()) + (argument.many ? "..." : "");
    text += argument.required ? " " + word : " [" + word + "]";
  }
  if (!command.parts.empty()) text += " " + italic("COMMAND") + " ...";
  return text + "\n";
}

std::string render_examples(const std::string& footer) {
  if (!footer.starts_with("Examples")) return "";
  std::string text = footer.substr(std::min(footer.size(), footer.find('\n') + 1));
  while (text.ends_with('\n')) text.pop_back();
  return ".SH EXAMPLES\n.nf\n" + escape_roff(text) + "\n.fi\n";
}

std::string render_list(const char* title, const std::string& entries) {
  return entries.empty() ? "" : fmt::format(".SH {}\n{}", title, entries);
}

std::string render_arguments(const CommandInfo& command) {
  std::string arguments;
  for (const OptionInfo& argument : command.arguments) arguments += render_argument(argument);
  return render_list("ARGUMENTS", arguments);
}

std::string render_options(const CommandInfo& command) {
  std::string options;
  for (const OptionInfo& option : command.options) options += render_option(option);
  return render_list("OPTIONS", options);
}

std::string render_parts(const std::string& name, const CommandInfo& command) {
  if (command.parts.empty()) return "";
  std::string text = ".SH COMMANDS\n";
  for (const CommandInfo& part : command.parts) {
    const std::string full = name + " " + part.name;
    text += fmt::format(".SS {}\n{}.PP\n{}\n", escape_roff(full), render_synopsis(full, part),
                        escape_roff(end_sentence(part.summary)));
    for (const OptionInfo& argument : part.arguments) text += render_argument(argument);
    for (const OptionInfo& option : part.options) text += render_option(option);
    if (part.inherits) text += ".PP\n" + escape_roff(fmt::format("The options of {} hold here, too.", name)) + "\n";
  }
  return text;
}

std::string render_verbs(const CommandInfo& program) {
  std::string text;
  for (const CommandInfo& verb : program.parts)
    text += fmt::format(".TP\n{}\n{}\n", bold(program.name + " " + verb.name), escape_roff(end_sentence(verb.summary)));
  return render_list("COMMANDS", text);
}

std::string render_statuses() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitStatus status :
       {ExitStatus::done, ExitStatus::work_failed, ExitStatus::usage, ExitStatus::not_comparable,
        ExitStatus::missing_component, ExitStatus::gate_failed, ExitStatus::inconclusive, ExitStatus::interrupted})
    text += fmt::format(".TP\n{}\n{}\n", static_cast<int>(status), escape_roff(explain_status(status)));
  return text;
}

std::string render_see_also(const CommandInfo& program, const std::string& command) {
  std::vector<std::string> pages;
  if (!command.empty()) pages.push_back(program.name);
  for (const CommandInfo& verb : program.parts)
    if (verb.name != command && command.empty()) pages.push_back(program.name + "-" + verb.name);
  std::string text;
  for (const std::string& page : pages) text += (text.empty() ? "" : ",\n") + bold(page) + "(1)";
  return ".SH SEE ALSO\n" + text + "\n";
}

const CommandInfo& find_verb(const CommandInfo& program, const std::string& name) {
  if (name.empty()) return program;
  const auto found = std::find_if(program.parts.begin(), program.parts.end(),
                                  [&](const CommandInfo& verb) { return verb.name == name; });
  CHECK(found != program.parts.end());
  return *found;
}

}  // namespace

std::string manual_page_file(const CommandInfo& program, const std::string& command) {
  return program.name + (command.empty() ? "" : "-" + command) + ".1";
}

std::string render_manual_page(const CommandInfo& program, const std::string& command, const PageFacts& facts) {
  const CommandInfo& verb = find_verb(program, command);
  const std::string page = program.name + (command.empty() ? "" : "-" + command);
  const std::string name = program.name + (command.empty() ? "" : " " + command);
  std::string text = fmt::format(".TH {} 1 {} \"{} {}\" \"{} manual\"\n", escape_roff(title_case(page)), facts.date,
                                 program.name, facts.version, program.name);
  std::string summary = verb.summary;
  text += fmt::format(".SH NAME\n{} \\- {}\n", escape_roff(page), escape_roff(summary));
  text += ".SH SYNOPSIS\n" + render_synopsis(name, verb);
  text += ".SH DESCRIPTION\n" + escape_roff(end_sentence(summary)) + "\n";
  text += render_arguments(verb) + render_options(verb);
  text += command.empty() ? render_verbs(program) : render_parts(name, verb);
  return text + render_examples(verb.footer) + render_statuses() + render_see_also(program, command);
}

}  // namespace tprimat

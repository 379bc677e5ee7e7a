#include "command_line/session.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>

#include "base/build_info.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "base/printable.h"
#include "command_line/options.h"
#include "command_line/terminal.h"
#include "text/json.h"

namespace tprimat {
namespace {

LogSettings log_settings_for(const Session& session) {
  const LogLevel level = session.quiet ? LogLevel::quiet : session.verbose ? LogLevel::verbose : LogLevel::normal;
  return {level, shows_colour(STDERR_FILENO, session.no_color)};
}

int to_int(ExitStatus status) { return static_cast<int>(status); }

// Flushes the output of a verb: lost output is reported and sets the exit status.
int finish_output(int status) {
  const char* const reason = flush_stdout();
  if (reason == nullptr) return status;
  log_error(std::string("cannot write to standard output: ") + reason);
  return to_int(ExitStatus::work_failed);
}

bool asks_for_json(const std::vector<std::string>& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  return std::find(words.begin(), end, "--json") != end;
}

// The errors as sentences; with --json, then for programs too, in one line of stderr that begins with {"errors".
int report_errors(const Session& session, const std::vector<Problem>& problems, ExitStatus status) {
  for (const Problem& problem : problems) log_error(to_string(problem));
  if (asks_for_json(session.words)) {
    Json errors = Json::array();
    for (const Problem& problem : problems)
      errors.push_back(Json{{"problem", problem.what}, {"place", problem.where}, {"remedy", problem.hint}});
    write_stderr(print_json_line(Json{{"errors", errors}, {"exit_status", to_int(status)}}) + "\n");
  }
  return to_int(status);
}

// "--seq: '-5' is not a whole number\n  see tprimat plan --help": option, sentence and remedy.
Problem split_refusal(const std::string& refusal) {
  const size_t end = refusal.find("\n  ");
  Problem problem{refusal.substr(0, end), "", end == std::string::npos ? "" : refusal.substr(end + 3)};
  const size_t colon = problem.what.find(": ");
  if (!problem.what.starts_with("--") || colon != problem.what.find(' ') - 1) return problem;
  problem.where = problem.what.substr(0, colon);
  problem.what.erase(0, colon + 2);
  return problem;
}

int answer_words(const Session& session, const ParsedWords& words) {
  if (words.refusal.empty()) {
    print_result(words.answer);
    return finish_output(to_int(ExitStatus::done));
  }
  return report_errors(session, {split_refusal(words.refusal)}, ExitStatus::usage);
}

int run_action(const Session& session) {
  try {
    return to_int(session.action());
  } catch (const Error& error) {
    return report_errors(session, error.problems(), error.status());
  } catch (const std::bad_alloc&) {
    return report_errors(session, {{"out of memory", "", ""}}, ExitStatus::work_failed);
  } catch (const std::exception& error) {
    return report_errors(session, {{std::string("unexpected: ") + error.what(), "", ""}}, ExitStatus::work_failed);
  }
}

}  // namespace

CommandLine* add_verb(CommandLine& program, Session& session, const std::string& name, const std::string& summary,
                      const std::string& examples) {
  CommandLine* verb = program.add_subcommand(name, summary);
  verb->footer("Examples:\n" + examples);
  verb->add_flag("-q,--quiet", session.quiet, "Print only errors on stderr");
  verb->add_flag("-v,--verbose", session.verbose, "Print more detail on stderr");
  verb->add_flag("--no-color", session.no_color, "Disable colour (as NO_COLOR does)");
  return verb;
}

void add_json_option(CommandLine& verb, Session& session) {
  verb.add_flag("--json", session.json, "Print JSON on stdout");
}

void add_config_options(CommandLine& verb, Session& session) {
  verb.add_option("--config", session.config_path,
                  "Configuration file (default: ./config.yaml, else the built-in default)")
      ->type_name("FILE");
  verb.add_option("--set", session.overrides,
                  "Override one key, e.g. --set training.data.seq_length=4096; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void print_result(std::string_view text) { write_stdout(printable(text, "\n\t")); }
void print_coloured(std::string_view text) { write_stdout(printable(text, "\n\t\033")); }

int run_program(const Program& program, int argc, char** argv) {
  open_standard_streams();
  std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename() : std::filesystem::path();
  if (name.empty()) name = "tprimat";
  ProgramParser parser({name, program.purpose, name + " " + std::string(build_info().version),
                        name + " COMMAND --help explains a command and shows examples."});
  Session session;
  session.words.assign(argv + std::min(argc, 1), argv + argc);
  session.words.insert(session.words.begin(), name);
  program.add_verbs(parser.root(), session);
  const ParsedWords words = parser.parse(argc, argv);
  if (!words.names_a_verb) return answer_words(session, words);
  configure_log(log_settings_for(session));
  const int status = finish_output(run_action(session));
  if (status != to_int(ExitStatus::done)) program.after_failure(status);
  return status;
}

}  // namespace tprimat

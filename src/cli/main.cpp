#include "cli/main.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <sstream>
#include <string>

#include "base/build_info.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output.h"
#include "cli/help_layout.h"
#include "cli/parse_failure.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "comm/communicator.h"

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

int print_help(const CLI::App& program, const CLI::ParseError& wish) {  // --help, --version
  std::ostringstream text;
  program.exit(wish, text, text);
  print_result(text.str());
  return finish_output(to_int(ExitStatus::done));
}

int parse_failure(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return print_help(program, error);
  log_error(explain_parse_failure(program, error));
  return to_int(ExitStatus::usage);
}

int run_action(const Session& session) {
  try {
    return to_int(session.action());
  } catch (const Error& error) {
    for (const Problem& problem : error.problems()) log_error(to_string(problem));
    return to_int(error.status());
  } catch (const std::bad_alloc&) {
    log_error("out of memory");
    return to_int(ExitStatus::work_failed);
  } catch (const std::exception& error) {
    log_error(std::string("unexpected: ") + error.what());
    return to_int(ExitStatus::work_failed);
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  open_standard_streams();
  CLI::App program("How fast, how cheaply and how close to the limit does this hardware train this language model?",
                   "tprimat");
  program.set_version_flag("--version", "tprimat " + std::string(build_info().version));
  program.require_subcommand(1);
  program.footer("tprimat COMMAND --help explains a command and shows examples.");
  lay_out_help(program);
  Session session;
  add_verbs(program, session);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_failure(program, error);
  }
  configure_log(log_settings_for(session));
  const int status = finish_output(run_action(session));
  if (status != to_int(ExitStatus::done)) abort_ranks(status);  // those of the same training would wait for this one
  return status;
}

}  // namespace tprimat

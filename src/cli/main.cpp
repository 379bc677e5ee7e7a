#include "cli/main.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/help_layout.h"
#include "cli/verbs.h"
#include "comm/communicator.h"
#include "text/format.h"

namespace tprimat {
namespace {

LogSettings log_settings_for(const Session& session) {
  const bool colour = ::isatty(STDERR_FILENO) != 0 && !session.no_color && std::getenv("NO_COLOR") == nullptr;
  const LogLevel level = session.quiet ? LogLevel::quiet : session.verbose ? LogLevel::verbose : LogLevel::normal;
  return {level, colour};
}

int to_int(ExitStatus status) { return static_cast<int>(status); }

// "did you mean" for a verb that does not exist; empty when the verb is known.
std::string unknown_verb(const CLI::App& program, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> verbs;
  for (const CLI::App* verb : program.get_subcommands({})) verbs.push_back(verb->get_name());
  if (std::find(verbs.begin(), verbs.end(), argv[1]) != verbs.end()) return "";
  const std::string nearest = nearest_word(argv[1], verbs);
  return "unknown command '" + std::string(argv[1]) + "'" +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?") + "\n  see tprimat --help";
}

int parse_failure(const CLI::App& program, const CLI::ParseError& error, const std::string& unknown) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
    return program.exit(error);  // --help, --version
  if (!unknown.empty())
    log_error(unknown);
  else
    log_error(std::string(error.what()) + "\n  see tprimat --help, or tprimat COMMAND --help");
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
    return parse_failure(program, error, unknown_verb(program, argc, argv));
  }
  configure_log(log_settings_for(session));
  const int status = run_action(session);
  if (std::fflush(stdout) != 0) {
    log_error("cannot write to standard output");
    return to_int(ExitStatus::work_failed);
  }
  if (status != to_int(ExitStatus::done)) abort_ranks(status);  // those of the same training would wait for this one
  return status;
}

}  // namespace tprimat

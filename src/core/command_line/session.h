#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "command_line/options.h"

namespace tprimat {

// Common to all verbs: their options, and the action once the command line is parsed.
struct Session {
  std::string config_path;             // --config; empty: ./config.yaml, else the built-in default
  std::vector<std::string> overrides;  // --set key=value
  bool json = false, quiet = false, verbose = false, no_color = false;
  std::vector<std::string> words;      // the command line, with the program's name
  std::function<ExitStatus()> action;  // set by the selected verb; may throw Error
};

// Declares a verb with the options that all verbs have (--quiet, --verbose, --no-color, --help with examples).
// `examples` is printed under the options.
CommandLine* add_verb(CommandLine& program, Session& session, const std::string& name, const std::string& summary,
                      const std::string& examples);

void add_json_option(CommandLine& verb, Session& session);     // --json
void add_config_options(CommandLine& verb, Session& session);  // --config, --set

// All output to stdout. Unprintable characters become escapes; callers must replace line breaks within foreign text.
// The second is for printable text to which we added colour codes.
void print_result(std::string_view text);
void print_coloured(std::string_view text);

// One of the project's programs: `tprimat`, or `tprimat-train`.
struct Program {
  std::string purpose;                                                    // for --help
  std::function<void(CommandLine& program, Session& session)> add_verbs;  // in the order of --help
  std::function<void(int status)> after_failure = [](int) {};             // once the error is printed
};

// Parses the command line, runs its verb and prints errors. Returns the process's exit status (base/error.h).
// The program calls itself by the name it was started with.
int run_program(const Program& program, int argc, char** argv);

}  // namespace tprimat

#pragma once

#include <functional>
#include <string>

#include "command_line/session.h"

namespace tprimat {

// One of the project's programs: `tprimat`, or `tprimat-train`.
struct Program {
  std::string purpose;                                                    // for --help
  std::function<void(CommandLine& program, Session& session)> add_verbs;  // in the order of --help
  std::function<void(int status)> after_failure = [](int) {};             // once the error is printed
};

// Parses the command line, runs its verb and prints errors. Returns the process's exit status (base/exit_status.h).
// The program calls itself by the name it was started with.
int run_program(const Program& program, int argc, char** argv);

}  // namespace tprimat

#pragma once

namespace tprimat {

// The whole program: parses, runs the verb, prints errors. Returns the process's exit status (base/exit_status.h).
int run_program(int argc, char** argv);

}  // namespace tprimat

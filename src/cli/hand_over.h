#pragma once

#include <string>
#include <vector>

#include "command_line/session.h"

namespace tprimat::cli {

// A verb of tprimat-train that `tprimat` has too: --help lists it, and the whole command line is the trainer's.
void add_trainer_verb(CommandLine& program, const std::string& name);
bool is_trainer_verb(const std::string& name);
bool is_trainer_verb(int argc, char** argv);
int run_trainer_verb(int argc, char** argv);  // an exit status only where the trainer cannot be started

// The trainer in this process's place, as if it had been started under the name of this program. Returns only by
// throwing Error. The first word is the verb.
[[noreturn]] void become_trainer(std::vector<std::string> words);

}  // namespace tprimat::cli

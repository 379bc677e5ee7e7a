#pragma once

#include "command_line/session.h"

namespace tprimat::engine {

// One per file, <name>_verb.cpp.
void add_train_verb(CommandLine& program, Session& session);
void add_probe_verb(CommandLine& program, Session& session);
void add_data_verb(CommandLine& program, Session& session);
void add_libraries_verb(CommandLine& program, Session& session);
void add_commands_verb(CommandLine& program, Session& session);

void add_data_encode(CommandLine& verb, Session& session);  // tprimat data encode

}  // namespace tprimat::engine

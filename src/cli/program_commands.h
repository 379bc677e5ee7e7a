#pragma once

#include "command_line/command_info.h"
#include "command_line/options.h"

namespace tprimat::cli {

// All commands of `tprimat`, those of its trainer included. Without the trainer, these lack their options, with a
// warning.
CommandInfo describe_program(const CommandLine& program);

}  // namespace tprimat::cli

#pragma once

#include <string>

#include "command_line/command_info.h"

namespace tprimat {

// What the head and the foot of a manual page state.
struct PageFacts {
  std::string version;  // "0.1.0"
  std::string date;     // "2026-05-01"
};

// "tprimat-run.1" of a command of the program; "tprimat.1" of the program itself, where `command` is empty.
std::string manual_page_file(const CommandInfo& program, const std::string& command);

// The page in roff, for man(1): of the program, or of the command of this name with all its parts. The name must exist.
std::string render_manual_page(const CommandInfo& program, const std::string& command, const PageFacts& facts);

}  // namespace tprimat

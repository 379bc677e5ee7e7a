#pragma once

#include <string>
#include <vector>

#include "command_line/command_info.h"

namespace tprimat {

enum class Shell { bash, zsh, fish };

// A script that completes the program's commands, options, their words, files and folders in this shell.
std::string render_completion(Shell shell, const CommandInfo& program);

// What a shell offers for a value.
enum class Offer { nothing, words, list, files, folders };

Offer offer_for(const OptionInfo& option);
// Of a command's arguments: those of the first that has any.
Offer offer_for_arguments(const CommandInfo& command, std::vector<std::string>& words);

// A command of the program and what is known there.
struct CommandScope {
  std::string path;  // "config get"; empty: the program itself
  const CommandInfo* command = nullptr;
  std::vector<OptionInfo> options;  // its own and those it inherits
  std::vector<std::string> option_names() const;
  std::vector<std::string> part_names() const;
};
// The program first, then each command before its parts.
std::vector<CommandScope> list_scopes(const CommandInfo& program);

std::string render_bash_completion(const CommandInfo& program);
std::string render_zsh_completion(const CommandInfo& program);
std::string render_fish_completion(const CommandInfo& program);

}  // namespace tprimat

#pragma once

#include <memory>
#include <string>

#include "command_line/options.h"

namespace tprimat {

struct ProgramTexts {
  std::string name, purpose, version, footer;  // of --help and --version
};

// How a command line was read.
struct ParsedWords {
  bool names_a_verb = false;
  std::string answer;   // what --help or --version prints
  std::string refusal;  // why it cannot be followed, and where to read more
};

// Reads the command line of a program whose verbs were added to root().
class ProgramParser {
 public:
  explicit ProgramParser(const ProgramTexts& texts);
  ~ProgramParser();
  ProgramParser(const ProgramParser&) = delete;
  ProgramParser& operator=(const ProgramParser&) = delete;

  CommandLine& root() { return root_; }
  ParsedWords parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> inner_;
  CommandLine root_;
};

}  // namespace tprimat

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command_line/command_info.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tprimat {

// The part of CLI11 that declares commands and options, under the same names; only cli11.cpp compiles CLI11, which
// costs seconds per source.

// Checks the text of a value and may rewrite it. Returns why the value is refused, or "".
using Check = std::function<std::string(std::string& text)>;

class Option {
 public:
  explicit Option(CLI::Option* inner) : inner_(inner) {}

  Option* type_name(const std::string& name);       // the kind of value, for --help
  Option* choices(std::vector<std::string> words);  // what completions and manual pages offer; checks nothing
  Option* choose_from(const std::vector<std::string>& words);  // refuses all others
  Option* required();
  Option* check(const Check& check);
  Option* transform(const Check& change);
  Option* delimiter(char between);  // of the values of a list
  Option* expected(int fewest, int most);
  Option* allow_extra_args(bool allow);
  Option* take_last();  // of several values given one after the other; else they are an error
  Option* needs(Option* other);
  Option* excludes(Option* other);
  Option* capture_default_str();  // --help shows the target's current value
  Option* default_str(const std::string& text);
  Option* group(const std::string& name);  // "": --help leaves it out
  size_t count() const;                    // how often it was given

  const std::vector<std::string>& known_choices() const { return choices_; }
  bool stands_for(const CLI::Option* option) const { return inner_ == option; }

 private:
  CLI::Option* inner_;
  std::vector<std::string> choices_;
};

// A program, or a part of it with options of its own. Options and parts live as long as it does.
class CommandLine {
 public:
  explicit CommandLine(CLI::App& inner) : inner_(inner) {}

  // A std::string, a list of them, an int, int64_t, uint64_t or double, or an optional int64_t or double.
  template <class T>
  Option* add_option(const std::string& name, T& target, const std::string& doc = "");
  Option* add_flag(const std::string& name, bool& target, const std::string& doc);
  Option* get_option(const std::string& name);
  CommandLine* add_subcommand(const std::string& name, const std::string& summary);

  CommandLine* footer(const std::string& text);
  std::string footer() const;
  CommandLine* fallthrough();  // the parent's options are known here too
  CommandLine* require_subcommand(int fewest, int most);
  CommandLine* require_subcommand(int count = 1) { return require_subcommand(count, count); }
  CommandLine* callback(const std::function<void()>& work);  // once the command line named it and is read
  bool parsed() const;                                       // whether the command line named it
  size_t count(const std::string& option) const;             // how often it was given
  std::string text(const std::string& option) const;         // its last value
  CommandInfo describe() const;                              // without what --help leaves out

 private:
  CLI::App& inner_;
  std::deque<Option> options_;
  std::deque<CommandLine> parts_;
};

struct ProgramTexts {
  std::string name, purpose, version, footer;  // of --help and --version
};

// How a command line was read.
struct ParsedWords {
  bool names_a_verb = false;
  std::string answer;   // what --help or --version prints
  std::string refusal;  // why it is wrong, and where to read more
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

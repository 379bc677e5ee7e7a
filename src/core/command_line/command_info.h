#pragma once

#include <string>
#include <vector>

#include "text/fields.h"

namespace tprimat {

// An option or an argument, as its definition states it.
struct OptionInfo {
  std::vector<std::string> names;    // "-q", "--quiet"; of an argument: its name
  std::string value;                 // kind of its value: "FILE"; empty: it takes none
  std::string doc;                   // one sentence
  std::string default_text;          // empty: none is stated
  bool required = false;             // the command needs it
  bool optional_value = false;       // its value may be left out
  bool list = false;                 // its value is a list, separated by commas
  bool many = false;                 // it may be given several times
  std::vector<std::string> choices;  // the words that its value may be; empty: any

  static constexpr auto fields() {
    using O = OptionInfo;
    return field_list(field("names", &O::names, "its spellings"), field("value", &O::value, "kind of its value"),
                      field("doc", &O::doc, "its meaning"), field("default", &O::default_text, "value when not given"),
                      field("required", &O::required, "the command needs it"),
                      field("optional_value", &O::optional_value, "its value may be left out"),
                      field("list", &O::list, "its value is a list, separated by commas"),
                      field("many", &O::many, "it may be given several times"),
                      field("choices", &O::choices, "the words that its value may be"));
  }
};

// A command with its options and parts: the source of completions and manual pages.
struct CommandInfo {
  std::string name, summary;
  std::string footer;  // examples
  std::vector<OptionInfo> options, arguments;
  bool inherits = false;  // the options of the command above are known here too
  std::vector<CommandInfo> parts;

  static constexpr auto fields() {
    using C = CommandInfo;
    return field_list(field("name", &C::name, "its word on the command line"),
                      field("summary", &C::summary, "what it does"), field("footer", &C::footer, "examples"),
                      field("options", &C::options, "its options"), field("arguments", &C::arguments, "its arguments"),
                      field("inherits", &C::inherits, "the options of the command above are known here too"),
                      field("parts", &C::parts, "the commands below it"));
  }
};

}  // namespace tprimat

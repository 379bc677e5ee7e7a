#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tprimat {

// Explains why `program` rejected a command line: an unknown command or option with the nearest known one, or CLI11's
// message; with a pointer to --help.
std::string explain_parse_failure(const CLI::App& program, const CLI::ParseError& error);

}  // namespace tprimat

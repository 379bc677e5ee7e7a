#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tprimat {

using Json = nlohmann::ordered_json;  // keeps the order in which we declare fields

// Throws Error with "where:line:column" for text that is not one JSON value, and with `where` for numbers beyond double
// and for nesting that no file of ours has.
Json parse_json(std::string_view text, std::string_view where);

// Two-space indent, arrays of numbers on one line, trailing newline: what we write to files.
std::string print_json(const Json& value);

// One line, no trailing newline.
std::string print_json_line(const Json& value);

}  // namespace tprimat

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tprimat::logs {

// Plain ASCII on one line, without margins, at most `longest` bytes.
std::string quote_text(std::string_view text, size_t longest = 300);

// The text without its numbers, and words with digits in them: what two ranks say of the same is then the same.
std::string without_numbers(std::string_view text);

// A line of a program, of its help or of a dump of its arguments: what it says did not happen.
bool looks_like_source(std::string_view text);

bool is_name_char(char c);  // of an identifier: letter, digit or "_"

// "SIGKILL" for 9; "" for one without a name here.
std::string_view signal_name(int64_t number);

}  // namespace tprimat::logs

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tprimat::logs {

// Plain ASCII on one line, without margins, at most `longest` bytes.
std::string quote_text(std::string_view text, size_t longest = 300);

// The text without its numbers, and words with digits in them: equal for two ranks that report the same.
std::string without_numbers(std::string_view text);

// Whether a line is source code, help or a dump of arguments, which does not report an event.
bool looks_like_source(std::string_view text);

bool is_name_char(char c);  // of an identifier: letter, digit or "_"

// "SIGKILL" for 9; "" for one without a name here.
std::string_view signal_name(int64_t number);

}  // namespace tprimat::logs

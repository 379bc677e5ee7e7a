#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Makes foreign text (files, configurations, command lines) safe to show on a terminal and in a report.
namespace tprimat {

struct Utf8Character {
  char32_t code = 0;
  size_t bytes = 0;  // 0: no UTF-8 starts here (stray or overlong bytes, surrogates, an end too early)
};
Utf8Character decode_utf8(std::string_view text);  // of text that is not empty

// Whether a character controls a terminal or invisibly changes the text around it: control characters, bidirectional
// and zero-width characters, and Unicode line and paragraph separators.
bool is_unprintable(char32_t code);

// White space becomes blanks; other unprintable characters and bytes that are not UTF-8 become escapes: \x1b, \u202e,
// \xff. Those in `kept` (ASCII) stay.
std::string printable(std::string_view text, std::string_view kept = "");

}  // namespace tprimat

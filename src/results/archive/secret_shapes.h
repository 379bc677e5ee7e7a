#pragma once

#include <string_view>
#include <vector>

namespace tprimat::results {

// A part of a text.
struct TextSpan {
  size_t begin = 0, size = 0;
};

// Secrets that a text states beside their names or in a known form, in order and without overlaps: values behind names
// such as MY_PASSWORD= or "api_key":, passwords in addresses (https://user:PASSWORD@host), tokens behind Bearer, JSON
// Web Tokens, private keys in PEM form (line by line, so that a log keeps its lines), and the secret behind an AWS key.
std::vector<TextSpan> find_stated_secrets(std::string_view text);

}  // namespace tprimat::results

#include "base/environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace tprimat {

namespace {

std::string in_capitals(std::string_view text) {
  std::string capitals(text);
  std::transform(capitals.begin(), capitals.end(), capitals.begin(), [](unsigned char c) { return std::toupper(c); });
  return capitals;
}

}  // namespace

bool names_a_secret(std::string_view variable) {
  const std::string name = in_capitals(variable);
  for (const std::string_view place : {"_FILE", "_PATH", "_DIR"})
    if (name.ends_with(place)) return false;
  constexpr std::array k_parts = {"SECRET",  "PASSWORD", "PASSWD",     "PASSPHRASE", "CREDENTIAL",
                                  "API_KEY", "APIKEY",   "ACCESS_KEY", "PRIVATE_KEY"};
  if (std::any_of(k_parts.begin(), k_parts.end(), [&](const char* part) { return name.find(part) != name.npos; }))
    return true;
  constexpr std::string_view k_token = "TOKEN";
  for (size_t at = name.find(k_token); at != name.npos; at = name.find(k_token, at + 1)) {
    const size_t end = at + k_token.size();
    if (end == name.size() || std::isalpha(static_cast<unsigned char>(name[end])) == 0) return true;
  }
  return false;
}

bool holds_a_secret(std::string_view variable, std::string_view value) {
  if (names_a_secret(variable)) return true;
  const std::string name = in_capitals(variable);
  if (name == "KEY" || name == "PAT" || name.ends_with("_KEY") || name.ends_with("_PAT")) return true;
  const bool is_count = !value.empty() && std::isdigit(static_cast<unsigned char>(value.front())) != 0 &&
                        value.find_first_not_of("0123456789.,_+-eEkKmMbBgGtT") == std::string_view::npos;
  return (name == "TOKENS" || name.ends_with("_TOKENS")) && !value.empty() && !is_count;
}

std::optional<std::string> read_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace tprimat

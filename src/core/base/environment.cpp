#include "base/environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace tprimat {

bool names_a_secret(std::string_view variable) {
  std::string name(variable);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
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

std::optional<std::string> read_environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace tprimat

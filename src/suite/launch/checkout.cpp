#include "launch/checkout.h"

#include <fmt/format.h>

#include <fstream>

#include "launch/python_framework.h"

namespace tprimat::suite {
namespace {

namespace fs = std::filesystem;

// "MAJOR = 0" -> "0"
std::string value_in(const std::string& line, const std::string& name) {
  if (!line.starts_with(name + " =")) return "";
  const size_t start = line.find_first_of("0123456789"), end = line.find_first_not_of("0123456789", start);
  return start == std::string::npos ? "" : line.substr(start, end - start);
}

}  // namespace

fs::path place_of_checkout(const Checkout& checkout, const std::vector<std::string>& usual_places,
                           const std::string& landmark) {
  if (!checkout.installation.empty()) return checkout.installation;
  std::error_code unreadable;
  for (const fs::path place : usual_places)
    if (fs::exists(place / landmark, unreadable)) return place;
  return usual_places.front();
}

std::optional<std::string> read_megatron_version(const fs::path& folder) {
  std::ifstream file(folder / "megatron/core/package_info.py");
  std::string parts[3];
  const char* const names[] = {"MAJOR", "MINOR", "PATCH"};
  for (std::string line; std::getline(file, line);)
    for (int i = 0; i < 3; ++i)
      if (std::string value = value_in(line, names[i]); !value.empty()) parts[i] = std::move(value);
  if (parts[0].empty() || parts[1].empty()) return std::nullopt;
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2].empty() ? "0" : parts[2]);
}

std::string python_for(Framework framework) {
  const fs::path python = python_environments() / enum_name(framework) / "bin" / "python";
  std::error_code unreadable;
  return fs::exists(python, unreadable) ? python.string() : "python3";
}

}  // namespace tprimat::suite

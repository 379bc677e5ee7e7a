#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

// Files of /proc and /sys: short, and absent on many machines.
namespace tprimat {

inline std::optional<std::string> read_small_file(const std::filesystem::path& path) {
  std::ifstream stream(path);
  if (!stream) return std::nullopt;
  // read() and not a stream buffer's iterators, which throw: reading /proc fails when the process ends meanwhile.
  std::string text;
  char piece[4096];
  while (stream.read(piece, sizeof piece), stream.gcount() > 0)
    text.append(piece, static_cast<size_t>(stream.gcount()));
  if (stream.bad()) return std::nullopt;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text;
}

inline std::optional<double> read_small_number(const std::filesystem::path& path) {
  const std::optional<std::string> text = read_small_file(path);
  if (!text || text->empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  return *end == '\0' ? std::optional(value) : std::nullopt;
}

// The rest of the first line that begins with `start`.
inline std::optional<std::string> find_line(const std::filesystem::path& file, std::string_view start) {
  std::istringstream lines(read_small_file(file).value_or(""));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(start)) return line.substr(start.size());
  return std::nullopt;
}

}  // namespace tprimat

#include "archive/find_sealed.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace tprimat {
namespace {

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(path).lexically_normal())
    if (part != "/" && part != ".") parts.push_back(part.string());
  return parts;
}

size_t common_end(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return static_cast<size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
}

size_t common_start(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

void SealedNames::add(const std::string& name) {
  by_file_name_[std::filesystem::path(name).filename().string()].push_back(name);
}

bool SealedNames::holds(const std::string& name) const {
  const auto group = by_file_name_.find(std::filesystem::path(name).filename().string());
  return group != by_file_name_.end() &&
         std::find(group->second.begin(), group->second.end(), name) != group->second.end();
}

std::optional<std::string> SealedNames::find(const std::string& path, const std::string& beside) const {
  const std::vector<std::string> wanted = split_path(path), neighbour = split_path(beside);
  const auto group = by_file_name_.find(std::filesystem::path(path).filename().string());
  if (group == by_file_name_.end()) return std::nullopt;
  std::optional<std::string> best;
  std::pair<size_t, size_t> best_fit{0, 0};
  bool is_alone = false;
  for (const std::string& name : group->second) {
    const std::vector<std::string> parts = split_path(name);
    const std::pair<size_t, size_t> fit{common_end(parts, wanted), common_start(parts, neighbour)};
    if (fit.first < std::min<size_t>({2, parts.size(), wanted.size()}) || fit < best_fit) continue;
    is_alone = fit != best_fit;
    best_fit = fit, best = name;
  }
  return is_alone ? best : std::nullopt;
}

}  // namespace tprimat

#include "archive/find_sealed.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace tprimat::results {
namespace {

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(path).lexically_normal())
    if (part != "/" && part != ".") parts.push_back(part.string());
  return parts;
}

// The last two components of a path, or the only one.
std::string end_of(const std::vector<std::string>& parts) {
  return parts.size() < 2 ? parts.back() : parts[parts.size() - 2] + '/' + parts.back();
}

size_t common_end(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return static_cast<size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
}

size_t common_start(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The best match; nothing if there is none or a tie. `fit_of` gives nothing for a mismatch.
template <class Item, class FitOf>
std::optional<std::string> find_best(const std::vector<const Item*>& items, FitOf fit_of) {
  decltype(fit_of(*items.front())) best_fit;
  std::optional<std::string> best;
  for (const Item* each : items) {
    const auto fit = fit_of(*each);
    if (!fit || fit < best_fit) continue;
    best = fit == best_fit ? std::nullopt : std::optional(each->name);
    best_fit = fit;
  }
  return best;
}

}  // namespace

void SealedNames::add(const std::string& name) {
  const auto [added, is_new] = names_.insert({name, {name, split_path(name)}});
  if (!is_new || added->second.parts.empty()) return;
  by_file_name_[added->second.parts.back()].push_back(&added->second);
  by_end_[end_of(added->second.parts)].push_back(&added->second);
}

// Thousands of runs share file names, but not folder names.
std::vector<const SealedNames::SealedName*> SealedNames::find_candidates(const std::vector<std::string>& wanted) const {
  std::vector<const SealedName*> candidates;
  const auto append = [&](const auto& index, const std::string& key) {
    if (const auto group = index.find(key); group != index.end())
      candidates.insert(candidates.end(), group->second.begin(), group->second.end());
  };
  if (wanted.size() == 1) append(by_file_name_, wanted.back());
  if (wanted.size() < 2) return candidates;
  append(by_end_, end_of(wanted));
  append(by_end_, wanted.back());
  return candidates;
}

// How well a sealed name fits a path: by the number of matching components at the end, then of those shared with the
// neighbour's folders.
std::optional<std::string> SealedNames::find(const std::string& path, const std::string& beside) const {
  const std::vector<std::string> wanted = split_path(path), neighbour = split_path(beside);
  return find_best(find_candidates(wanted), [&](const SealedName& each) {
    return std::optional(std::pair(common_end(each.parts, wanted), common_start(each.parts, neighbour)));
  });
}

// The neighbour's own folder is the nearest, then one with which it shares more folders.
std::optional<std::string> SealedNames::find_by_name(const std::string& path, const std::string& beside,
                                                     const std::function<bool(const std::string&)>& may_be) const {
  const std::vector<std::string> wanted = split_path(path), neighbour = split_path(beside);
  const auto group = wanted.empty() ? by_file_name_.end() : by_file_name_.find(wanted.back());
  if (group == by_file_name_.end()) return std::nullopt;
  return find_best(group->second, [&](const SealedName& each) -> std::optional<std::pair<bool, size_t>> {
    if (!may_be(each.name)) return std::nullopt;
    const size_t shared = common_start(each.parts, neighbour);
    return std::pair(shared + 1 == each.parts.size() && shared + 1 == neighbour.size(), shared);
  });
}

}  // namespace tprimat::results

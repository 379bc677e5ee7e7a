#include "report/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "text/format.h"

namespace tprimat::results {

std::string Remark::list_whose(size_t max_named) const {
  const std::span<const std::string> named = std::span(whose).first(std::min(whose.size(), max_named));
  const std::string text = join(named, ", ");
  return named.size() < whose.size() ? text + fmt::format(" and {} more", whose.size() - named.size()) : text;
}

void Remarks::add(const Finding& finding, const std::string& whose) {
  const auto [place, is_new] = places_.emplace(finding.code + '\n' + finding.sentence, all_.size());
  if (is_new) all_.push_back({finding, {}});
  std::vector<std::string>& names = all_[place->second].whose;
  if (names.empty() || names.back() != whose) names.push_back(whose);
}

std::vector<Remark> Remarks::worst_first() && {
  std::stable_sort(all_.begin(), all_.end(),
                   [](const Remark& a, const Remark& b) { return a.finding.severity > b.finding.severity; });
  return std::move(all_);
}

std::vector<Remark> gather_findings(const ModelGroup& group, std::string (*name_pair)(const ModelGroup&, const Pair&)) {
  Remarks all;
  for (const Pair& pair : group.pairs)
    for (const Finding& finding : pair.findings) all.add(finding, name_pair(group, pair));
  for (const Contender& contender : group.contenders)
    for (const Finding& finding : contender.findings) all.add(finding, contender.letter);
  return std::move(all).worst_first();
}

}  // namespace tprimat::results

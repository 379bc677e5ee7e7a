#include "published/notes.h"

#include <map>
#include <regex>

namespace tprimat::planner {

std::vector<std::string> find_in_cell(const PublishedRow& row, const std::string& column, const char* pattern) {
  thread_local std::map<std::string, std::regex> compiled;
  const std::regex& wanted = compiled.try_emplace(pattern, pattern).first->second;
  const std::string text = row.cell(column).substr(0, 1000);
  std::smatch match;
  if (!std::regex_search(text, match, wanted)) return {};
  return {match.begin() + 1, match.end()};
}

}  // namespace tprimat::planner

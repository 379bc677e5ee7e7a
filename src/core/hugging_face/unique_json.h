#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "text/format.h"

namespace tprimat {

// Reads JSON of which each object may name a key once only: of two entries of one name, readers disagree which counts.
// J is Json where the order of keys matters, else nlohmann::json, whose objects take many keys quickly. Throws Error
// with `where` for anything else and for nesting beyond `deepest`. Include from .cpp files only.
template <class J>
J parse_unique_json(std::string_view text, const std::string& where, int deepest = 100) {
  std::vector<std::unordered_set<std::string>> keys;
  const auto check = [&](int depth, typename J::parse_event_t event, const J& parsed) {
    if (depth > deepest) throw Error(Problem{fmt::format("is nested more than {} deep", deepest), where, ""});
    if (event == J::parse_event_t::object_start) keys.emplace_back();
    if (event == J::parse_event_t::object_end) keys.pop_back();
    if (event == J::parse_event_t::key && !keys.back().insert(parsed.template get<std::string>()).second)
      throw Error(Problem{
          fmt::format("names '{}' twice", printable(parsed.template get_ref<const std::string&>().substr(0, 200))),
          where, ""});
    return true;
  };
  try {
    return J::parse(text, check);
  } catch (const nlohmann::json::exception& error) {
    throw Error(Problem{fmt::format("is not valid JSON: {}", printable(error.what())), where, ""});
  }
}

}  // namespace tprimat

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "text/format.h"
#include "text/json_fields.h"

namespace tprimat {

// The fields of a struct that are there, with their values and meanings. Include from .cpp files only.
template <Described S>
TextTable field_table(const S& value) {
  TextTable table{{"fact", "value", "meaning"}, {}, {1}};
  const Json json = to_json(value);
  for_each_field<S>([&](const auto& each) {
    const auto found = json.find(std::string(each.key));
    if (found == json.end()) return;
    table.rows.push_back({std::string(each.key),
                          found->is_string() ? found->template get<std::string>() : found->dump(),
                          std::string(each.doc)});
  });
  return table;
}

}  // namespace tprimat

#pragma once

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
    if (const Json* found = json.find(each.key))
      table.rows.push_back({std::string(each.key), print_json_bare(*found), std::string(each.doc)});
  });
  return table;
}

}  // namespace tprimat

#pragma once

#include <functional>
#include <string_view>

#include "text/json.h"

namespace tprimat {

// Tools that are asked again and again print one JSON document after another, with warnings between them. Throws Error
// when the first document is broken; returns false when a later one is, as the end of a recording that was stopped is.
bool for_each_json_document(std::string_view text, std::string_view where, const std::function<void(const Json&)>& use);

}  // namespace tprimat

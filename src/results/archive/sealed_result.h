#pragma once

#include "text/json.h"

namespace tprimat::results {

// Whether the reader of results takes a document for one. It accepts results of other tools, so a result that lacks a
// section is still one.
bool is_result(const Json& json);

// Whether a document holds results in a list or under keys, where no reader finds them.
bool holds_results(const Json& json);

}  // namespace tprimat::results

#pragma once

#include <string>
#include <string_view>

#include "text/json.h"

namespace tprimat::results {

// For element content and quoted attributes alike: what a file says is text, never markup. Control characters become
// spaces.
std::string escape_html(std::string_view text);

// For the inside of a <script> element: valid JSON in which no byte can end the element or be taken for markup, and no
// line separator stands that JavaScript of old took for the end of a line.
std::string escape_script_json(const Json& value);

}  // namespace tprimat::results

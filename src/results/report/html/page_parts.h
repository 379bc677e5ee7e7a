#pragma once

#include <string>
#include <string_view>

#include "compare/comparison.h"
#include "text/json.h"

// The page (page.html) is plain HTML that tells everything but the curves where scripts do not run.
namespace tprimat::results {

// For element content and quoted attributes alike: what a file says is text, never markup. Control characters become
// spaces.
std::string escape_html(std::string_view text);

// For the inside of a <script> element: valid JSON in which no byte can end the element or be taken for markup, and no
// line separator stands that JavaScript of old took for the end of a line.
std::string escape_script_json(const Json& value);

// All participants of all models in one table: facts, every metric with its interval. What a script sorts and filters
// by stands in attributes: data-value holds a figure in full, data-model and the like a fact.
std::string render_run_table(const Comparison& comparison);

// What every finding is about, what shows it, and what to do.
std::string render_audit(const Comparison& comparison);

}  // namespace tprimat::results

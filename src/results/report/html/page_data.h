#pragma once

#include "compare/comparison.h"
#include "text/json.h"

namespace tprimat::results {

// What the page's scripts draw from: comparison_to_json with the same numbers, and to each participant its series,
// peaks, sensors and derivations, to each model its settings side by side. Findings stand once, in `findings`, and are
// referred to by their place there.
Json page_to_json(const Comparison& comparison);

}  // namespace tprimat::results

#pragma once

#include "compare/comparison.h"
#include "text/json.h"

namespace tprimat::results {

// What each participant ran on and was asked for, key by key: [{"key", "values", "of"}], where `of` holds for each
// participant the place of its value in `values`, or -1 where its file does not say. A key that is the same for all has
// one value and no `of`. Of repetitions that differ the value lists all.
Json settings_to_json(const ModelGroup& group);

}  // namespace tprimat::results

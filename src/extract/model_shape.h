#pragma once

#include <map>
#include <optional>
#include <string>

#include "extract/extracted_log.h"
#include "spec/model_spec.h"

namespace tprimat {

// The model's shape as the log's own configuration dump describes it (Megatron's arguments, a Hugging Face config), or
// by its name from the model catalogue. Nothing where a size is not stated: a shape is never guessed.
std::optional<ModelSpec> find_model_shape(const std::map<std::string, std::string>& settings, const LoggedFacts& facts);

}  // namespace tprimat

#pragma once

#include <optional>
#include <string>

#include "spec/findings.h"
#include "spec/model_spec.h"
#include "text/json.h"

namespace tprimat {

struct RopeSettings {
  double theta = 10000.0;
  std::optional<RopeScaling> scaling;
};

// Rotary positions in a config.json: `rope_theta` and `rope_scaling` of transformers 4, or `rope_parameters` of
// transformers 5. `max_positions` is the family's or the file's max_position_embeddings.
RopeSettings read_rope_settings(const Json& config, int64_t max_positions, const std::string& where,
                                Findings& findings);

// Puts both forms into a config.
void write_rope_settings(const ModelSpec& model, Json& config);

}  // namespace tprimat

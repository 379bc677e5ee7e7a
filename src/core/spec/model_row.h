#pragma once

#include "spec/model_spec.h"
#include "spec/tsv_rows.h"

namespace tprimat {

// The shape that a row of our own model tables states (columns of models.tsv). A malformed row is a bug (CHECK).
ModelSpec parse_model_row(const TsvRow& row);

}  // namespace tprimat

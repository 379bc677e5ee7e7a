#pragma once

#include <string>

namespace tprimat {

// The result file as JSON Schema, draft 2020-12, made from the field lists. schema/result.schema.json holds this text.
std::string print_schema();

}  // namespace tprimat

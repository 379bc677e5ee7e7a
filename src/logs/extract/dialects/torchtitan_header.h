#pragma once

#include <string_view>

#include "extract/log_builder.h"

namespace tprimat::logs {

// A line of torchtitan before the first step: devices, model, mesh, batch. False when it says nothing of the kind.
bool read_titan_header(std::string_view text, LogBuilder& log);

}  // namespace tprimat::logs

#pragma once

#include <string>

#include "ops/kernel_report.h"

namespace tprimat::engine::gpu {

KernelReport& kernel_report();

// That something is done otherwise than was asked for, or slower: each sentence becomes a warning of the report once.
void warn_once(const std::string& sentence);

}  // namespace tprimat::engine::gpu

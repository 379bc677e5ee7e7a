#pragma once

#include <string>
#include <vector>

#include "extract/read_log.h"
#include "result/run_result.h"
#include "spec/train_spec.h"

namespace tprimat::suite {

// Where a log says that something else ran than was asked for: one entry per setting. What it does not say is not
// judged. Numbers are equal when they agree to six digits.
std::vector<AuditEntry> audit_settings(const TrainSpec& asked, const logs::ExtractedLog& log);

// The beginning of the log, where frameworks print what they run with; nothing when it cannot be read.
logs::ReadLog read_log_beginning(const std::string& path);

}  // namespace tprimat::suite

#pragma once

#include <string>
#include <vector>

#include "extract/read_log.h"
#include "result/run_result.h"
#include "spec/train_spec.h"

namespace tprimat::suite {

// One entry for each setting that differs between the request and the log. Settings that the log does not show are not
// judged. Numbers are equal when they agree to six digits.
std::vector<AuditEntry> audit_settings(const TrainSpec& asked, const logs::ExtractedLog& log);

// The beginning of the log, where frameworks print their settings; nothing if it cannot be read.
logs::ReadLog read_log_beginning(const std::string& path);

}  // namespace tprimat::suite

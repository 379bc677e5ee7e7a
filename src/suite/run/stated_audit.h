#pragma once

#include <string>
#include <vector>

#include "extract/extracted_log.h"
#include "launch/launch_plan.h"
#include "result/run_result.h"

namespace tprimat::suite {

// What a framework made of the settings that its plan states, by its log.
struct StatedAudit {
  std::vector<AuditEntry> differences;  // one for each setting that has another value, or that the log does not have
  std::vector<std::string> warnings;    // settings that it left out, and why; or that nothing could be compared
};

StatedAudit audit_stated(const std::vector<StatedSetting>& stated, const logs::ExtractedLog& log);

}  // namespace tprimat::suite

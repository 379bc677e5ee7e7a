#pragma once

#include "process/process.h"

namespace tprimat {

// Starts programs on this machine. Between us and each program stands a warden (process/warden.h), so that the
// program's whole tree ends when it is stopped, and also when we are killed.
class LocalRunner : public ProcessRunner {
 public:
  std::unique_ptr<ChildProcess> start(const Command& command) override;
};

}  // namespace tprimat

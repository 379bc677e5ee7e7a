#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "extract/read_log.h"

namespace tprimat::logs {

// Numbers the attempts through all runs of the log. An attempt whose records show other work than the attempt before
// (batch, tokens per step, devices) starts a new run.
void number_attempts(ReadLog& read);

// One attempt alone, as if the log held no other. Throws Error for a number that the log does not have.
ReadLog select_attempt(const ReadLog& read, int64_t attempt);

// By default the last run of the log, as it was read.
struct AttemptChoice {
  bool all = false;
  std::optional<int64_t> number = {};
};

// One log for each selected attempt.
std::vector<ReadLog> choose_attempts(ReadLog read, const AttemptChoice& choice);

}  // namespace tprimat::logs

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "extract/dialect.h"

namespace tprimat::logs {

const std::vector<Dialect>& dialects();  // every log format; where two fit equally well, the first is taken

// The readers that run on every log: failures and pauses, machine facts, effective settings.
const std::vector<Dialect>& common_readers();
Dialect failures_reader();       // events that end a run: out of memory, time-outs, signals, exceptions, device errors
Dialect pauses_reader();         // events that a run survives: evaluations, checkpoints, updates left out
Dialect machine_facts_reader();  // GPUs, versions, layout, parameter count, memory of each rank
Dialect settings_reader();       // the effective configuration

const Dialect& find_dialect(std::string_view id);  // throws Error that names the nearest one

// The kind of a file that is not a training log, and the command that reads it, by its first bytes: "a Chrome trace:
// `tprimat profile --summarise` reads it". Empty when it may be a log.
std::string describe_other_kind(std::string_view head);

}  // namespace tprimat::logs

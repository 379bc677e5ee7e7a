#pragma once

#include "extract/dialect.h"

// The readers that run on every log, whatever its dialect: they know no steps.
namespace tprimat::logs {

Dialect failures_reader();       // events that end a run: out of memory, time-outs, signals, exceptions, device errors
Dialect pauses_reader();         // events that a run survives: evaluations, checkpoints, updates left out
Dialect machine_facts_reader();  // GPUs, versions, layout, parameter count, memory of each rank
Dialect settings_reader();       // the effective configuration

}  // namespace tprimat::logs

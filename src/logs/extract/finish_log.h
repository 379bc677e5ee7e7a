#pragma once

#include "extract/dialect.h"
#include "extract/extracted_log.h"

namespace tprimat::logs {

// Merges the findings of the common readers into the dialect's log: events in the order of the log, each with the last
// step before it; settings; facts that the dialect left open.
void merge_common(ExtractedLog& log, ExtractedLog common);

// Derives facts from the whole series: how many steps each record averages, NaN losses, and the steps that hold an
// evaluation or a checkpoint, which was reported between them and the record before.
void label_steps(ExtractedLog& log, const Dialect* dialect);

}  // namespace tprimat::logs

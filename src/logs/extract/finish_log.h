#pragma once

#include "extract/extracted_log.h"

namespace tprimat::logs {

// Adds the findings of the common readers to those of the dialect: events in the order of the log, each with the last
// step before it; settings; facts that the dialect left open.
void merge_common(ExtractedLog& log, ExtractedLog common);

// What only the whole series shows: how many steps each record's time is the mean of, losses that are no number, and
// which steps hold an evaluation or a checkpoint, since one was reported between them and the record before.
void label_steps(ExtractedLog& log, bool evaluation_in_times);

}  // namespace tprimat::logs

#pragma once

#include <map>
#include <string>
#include <vector>

#include "extract/extracted_log.h"

namespace tprimat::logs {

// Facts and settings of a run in a part of a log, from the reader of a dialect and the common readers.
struct StatedFacts {
  LoggedFacts facts;
  std::map<std::string, std::string> settings;
};
StatedFacts gather_facts(const ExtractedLog& log, const ExtractedLog& common);

// Adds the facts that are not known yet.
void merge_facts(LoggedFacts& facts, const LoggedFacts& other);

// The decisive facts (of work, rate or learning) that both state and that differ: "devices 8 and 64"; else, if `b`
// repeats facts of `a`, the settings of the work that differ. The number of steps is not decisive: a training may be
// extended.
std::vector<std::string> differing_facts(const StatedFacts& a, const StatedFacts& b);

// Whether any decisive fact is stated.
bool states_decisive_fact(const LoggedFacts& facts);

// Whether `again` repeats several facts of `before`, more than a single line would by chance.
bool repeats_facts(const StatedFacts& before, const StatedFacts& again);

}  // namespace tprimat::logs

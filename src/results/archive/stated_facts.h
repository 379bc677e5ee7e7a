#pragma once

#include <string>

#include "archive/stated_result.h"

namespace tprimat::results {

// Names and contents of the files that the suite writes before a run starts. Empty contents: not in the archive.
struct RequestFiles {
  std::string spec_name, spec, launch_name, launch;
};

// Compares every setting of a result with the specification of its run, and its config_hash with both files.
void check_request(const StatedResult& result, const RequestFiles& files, Verification& found);

// Whether the suite made a result, by its hash, its sources or its trainer: no single fact can be left out to hide it.
// Only then do its facts use our names, and its memory peaks follow from its series and sensors.
bool is_of_suite(const RunResult& result);

// Compares facts of a result with other parts of the same result. Results of other tools may use other names and are
// skipped.
void check_own_facts(const StatedResult& result, Verification& found);

}  // namespace tprimat::results

#pragma once

#include <optional>
#include <string>

#include "run/profile_window.h"
#include "why/make_ledger.h"

// What the words of `tprimat why` name: a result with its profile, or traces, one per rank.
namespace tprimat::cli {

// Throws Error, naming the path, for what is neither. `steps`: only these steps are kept.
results::SideInput load_side(const std::string& word, const std::optional<suite::StepRange>& steps);

// A result that names its profile's files; nothing where there is none, or the files are gone.
std::optional<results::SideInput> load_profiled(const std::string& path, const RunResult& result);

// Records of a pipeline's ranks; false for what does not exist.
bool is_pipeline(const std::string& path);

// Of two pipelines' records, or two reports that state sums alone; nothing for other sides. Throws Error where only one
// side is of that kind.
std::optional<results::Ledger> explain_sums(const std::string& a, const std::string& b);

// Two sides of one label get the names of their folders, else letters.
void tell_apart(results::SideInput& a, results::SideInput& b);

}  // namespace tprimat::cli

#pragma once

#include <string>

#include "compare/comparison.h"

// Reports for continuous integration. Pure functions.
namespace tprimat::results {

// JUnit's XML as Ant's and Jenkins' schemas have it: a suite per model, a test case per check.
struct JUnitStamp {
  std::string timestamp;  // "2026-11-20T22:43:53", UTC
  std::string hostname;
};
std::string render_junit(const Comparison& comparison, const JUnitStamp& stamp);

// Workflow commands of GitHub Actions, one line each, worst first: `::error title=...::message` for what fails the job,
// `::warning` for warnings of the audit and for inconclusive pairs, `::notice` for gates that passed.
std::string render_annotations(const Comparison& comparison);

}  // namespace tprimat::results

#pragma once

#include <string>
#include <vector>

#include "compare/comparison.h"

// What continuous integration reads. Pure functions.
namespace tprimat::results {

// One thing that was checked: a result, a pair, a gate.
struct Check {
  enum class State { passed, failed, error, skipped };
  std::string suite;  // the model; "files" for what was no result
  std::string kind;   // result, pair, gate, file
  std::string name;   // path of the result, headline of the pair, gate and its two sides
  State state = State::passed;
  std::string type;      // a word for a program: invalid, not_comparable, regression, inconclusive, no_result
  std::string sentence;  // for people
};

// Every result (not complete: an error), every pair (not comparable: an error; inconclusive: skipped), every gate
// (failed: a failure; without an answer: an error), every file that is no result (skipped).
std::vector<Check> list_checks(const Comparison& comparison);

// JUnit's XML as Ant's and Jenkins' schemas have it: a suite per model, a test case per check.
struct JUnitStamp {
  std::string timestamp;  // "2026-11-20T22:43:53", UTC
  std::string hostname;
};
std::string render_junit(const Comparison& comparison, const JUnitStamp& stamp);

// Workflow commands of GitHub Actions, one line each, worst first: `::error title=...::message` for what fails the job,
// `::warning` for what the audit warns of and for pairs without an answer, `::notice` for gates that passed.
std::string render_annotations(const Comparison& comparison);

}  // namespace tprimat::results

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/comparison.h"
#include "result/metrics.h"

namespace tprimat {

// The rules are data: what to look for, how bad it is, what to say and what to do. `check` returns the figures that
// show it
// ("8192 against 2048"), or nothing when all is well or the facts are missing (for which there are rules of their own).
struct RunRule {
  std::string_view code;
  Severity severity;
  std::string_view sentence, remedy;
  std::optional<std::string> (*check)(const Contender& contender);
};
struct PairRule {
  std::string_view code;
  Severity severity;
  std::string_view sentence, remedy;
  std::optional<std::string> (*check)(const RunResult& reference, const RunResult& subject);
};
std::span<const RunRule> run_rules();    // run_rules.cpp
std::span<const PairRule> pair_rules();  // pair_rules.cpp

std::vector<Finding> audit_contender(const Contender& contender);
std::vector<Finding> audit_pair(const Contender& reference, const Contender& subject);

bool has_error(const std::vector<Finding>& findings);

// False for a metric that a finding of the pair shows to mean something else on each side: see the rules flop_formula,
// peak, memory_meaning, batch and sequence_length.
bool means_the_same(const Metric& metric, const std::vector<Finding>& findings);

}  // namespace tprimat

#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compare/comparison.h"
#include "result/metrics.h"

namespace tprimat::results {

// The evidence of a finding, as text ("8192 against 2048") and as list.
struct Proof {
  Proof(std::string words) : figures(std::move(words)) {}
  Proof(const char* words) : figures(words) {}
  explicit Proof(std::vector<Evidence> shown);  // builds the text from it
  std::string figures;
  std::vector<Evidence> evidence;
};

struct AuditOptions {
  std::optional<double> loss_tolerance;  // as a share of the loss; nothing: see find_loss_gap
};

struct Sides {
  const Contender &reference, &subject;
  const AuditOptions& options;
};

// The rules are data: code, severity, sentence, reason and remedy. `check` returns the evidence, or nothing if all is
// well or the facts are missing (for which there are separate rules). Checks each run of a participant; the first with
// evidence counts.
using RunCheck = std::optional<Proof> (*)(const LoadedRun& run);
// Checks a participant as a whole.
using ContenderCheck = std::optional<Proof> (*)(const Contender& contender);
struct RunRule {
  std::string_view code;
  Severity severity;
  std::string_view sentence, why, remedy;
  std::variant<RunCheck, ContenderCheck> check;
};
// Compares two runs: each run of one side with each of the other, and each repetition of a participant with its first.
using RunsCheck = std::optional<Proof> (*)(const RunResult& reference, const RunResult& subject);
// Compares the two sides as a whole.
using SidesCheck = std::optional<Proof> (*)(const Sides& sides);
struct PairRule {
  std::string_view code;
  Severity severity;
  std::string_view sentence, why, remedy;
  std::variant<RunsCheck, SidesCheck> check;
  std::optional<Severity> of_repetitions = {};  // nothing: that of a pair
};
std::span<const RunRule> run_rules();    // run_rules.cpp
std::span<const PairRule> pair_rules();  // pair_rules.cpp

// The code of every finding about repetitions that differ; its sentence comes from the rule of pairs.
inline constexpr const char* k_runs_differ = "runs_differ";

std::vector<Finding> audit_contender(const Contender& contender, const AuditOptions& options = {});
// The errors that one result shows by itself. Nothing is compared, so copies of it are not looked for. `run` stays as
// it is; it is not const because a long one is not worth a copy.
std::vector<Finding> find_run_errors(LoadedRun& run);

std::vector<Finding> audit_pair(const Contender& reference, const Contender& subject, const AuditOptions& options = {});

bool has_error(const std::vector<Finding>& findings);

// Of the findings of a pair and of its two sides.
Fairness judge_fairness(const std::vector<Finding>& of_pair, const Contender& reference, const Contender& subject);

// Why the figures of a metric are not compared; nothing if they are. Either they have different meanings on the two
// sides (Metric::unlike), or a side's own figure is in doubt (Metric::doubted, Metric::contradicted; a peak that both
// sides share does not affect a ratio). `findings` are those of the pair.
std::optional<std::string> why_not_compared(const Metric& metric, const std::vector<Finding>& findings,
                                            const Contender& reference, const Contender& subject);

}  // namespace tprimat::results

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "result/metrics.h"
#include "result/run_result.h"
#include "result/validity.h"
#include "stats/log_ratio.h"

namespace tprimat::results {

enum class GateOperator { less, less_or_equal, greater, greater_or_equal };
constexpr auto enum_table(GateOperator) {
  return std::to_array<std::pair<GateOperator, std::string_view>>({{GateOperator::less, "<"},
                                                                   {GateOperator::less_or_equal, "<="},
                                                                   {GateOperator::greater, ">"},
                                                                   {GateOperator::greater_or_equal, ">="}});
}

// A --fail-if condition: a change of `metric` against the baseline in this region is a failure.
struct Gate {
  std::string text;  // as it was given
  const Metric* metric = nullptr;
  GateOperator compare = GateOperator::less;
  bool relative = false;  // the change as a share of the baseline; otherwise in the metric's unit
  double threshold = 0;   // -0.03 for "-3%"
};

enum class GateOutcome {
  passed,          // the whole interval of the change lies outside the region that fails
  failed,          // the whole interval lies in it
  inconclusive,    // the interval straddles the threshold, or is missing
  not_comparable,  // different work, or a different kind of figure
  invalid          // a result of the pair is incomplete or invalid
};
constexpr auto enum_table(GateOutcome) {
  return std::to_array<std::pair<GateOutcome, std::string_view>>({{GateOutcome::passed, "passed"},
                                                                  {GateOutcome::failed, "failed"},
                                                                  {GateOutcome::inconclusive, "inconclusive"},
                                                                  {GateOutcome::not_comparable, "not comparable"},
                                                                  {GateOutcome::invalid, "invalid"}});
}

// One gate on one subject.
struct GateResult {
  Gate gate = {};
  std::string model = {}, baseline = {}, subject = {};  // model and labels
  std::optional<Estimate> before = {}, after = {};      // the figures of both sides, if known
  std::optional<Estimate> change = {};  // in the terms of the gate; without an interval: compared as values
  GateOutcome outcome = GateOutcome::inconclusive;
  std::string reason = {};  // why this outcome, as a sentence
};

enum class Severity { note, warning, error };

// One piece of evidence. Of a pair: the values of both sides. Of one run: the stated and the found value.
struct Evidence {
  std::string what;                // "hidden size"
  std::string reference, subject;  // or stated and found
};
using Evidences = std::vector<Evidence>;

// A finding of the audit. An error means that the measurements differ in kind, so there is no winner.
struct Finding {
  std::string code;  // "sequence_length"
  Severity severity = Severity::note;
  std::string sentence;  // with the evidence
  std::string remedy;    // what to do
  std::string why = {};  // its effect on the comparison
  std::vector<Evidence> evidence = {};
};

// How well a series of step times is identified by its values: compare/copies.h.
struct SeriesTrace {
  double typical = 0, rounding = 0, variation = 0;  // s; median, unit of the last digit, change from step to step
  size_t moves = 0;                                 // steps that do not repeat the time of the one before
  std::vector<double> values = {};                  // s; the different ones, sorted
  double spread = 0;                                // of the values, s
  double repeated = 0;                              // share of the moves whose value occurs again
  bool is_various() const;                          // enough different values to identify the run
};

// A result file and its content.
struct LoadedRun {
  std::string path;
  RunResult result;
  // Described before the per-step records are dropped.
  std::optional<std::string> outliers = {};
  std::optional<std::string> clock_gap = {}, reported_gap = {}, dense_count = {}, load_effect = {};
  std::optional<SkippedUpdates> skipped_updates = {};
  std::optional<SeriesTrace> trace = {};
};

struct SkippedFile {
  std::string path, reason;
};

// One participant: a run, or its repetitions (files that differ only in _r<k>).
struct Contender {
  std::string letter;           // "A": short name in tables and plots, unique within its model
  std::string label;            // "AMD Primus", longer where that is not unique
  std::vector<LoadedRun> runs;  // at least one
  std::vector<Finding> findings;
  std::vector<std::string> copies = {};  // "b.json of a.json": files that hold a run counted already
  std::vector<size_t> distinct = {};     // runs with different facts (compare/contender.h); empty: not yet found
  const RunResult& first() const { return runs.front().result; }
};

enum class Verdict { faster, slower, same, inconclusive };

// The audit's verdict on two participants: an error of the pair or of either side forbids the comparison, a warning
// becomes a note.
enum class Fairness { comparable, with_notes, not_comparable };
constexpr auto enum_table(Fairness) {
  return std::to_array<std::pair<Fairness, std::string_view>>({{Fairness::comparable, "comparable"},
                                                               {Fairness::with_notes, "with notes"},
                                                               {Fairness::not_comparable, "not comparable"}});
}

// The statistics behind a pair's interval and verdict; docs/method.md derives each.
struct PairStatistics {
  int64_t subject_runs = 0, reference_runs = 0;
  double standard_error = 0, degrees_of_freedom = 0;
  RunSpread run_spread = RunSpread::measured;
  std::optional<double> assumed_spread;
  double p_value = 1;
  std::optional<double> adjusted_p_value;
  std::optional<int64_t> tested_pairs, more_runs;
  std::optional<bool> more_runs_help;
  std::optional<Estimate> cycle_ratio;
  std::optional<Verdict> cycle_verdict;
  static constexpr auto fields() {
    using S = PairStatistics;
    return field_list(
        field("subject_runs", &S::subject_runs, "runs of the subject that count"),
        field("reference_runs", &S::reference_runs, "runs of the reference that count"),
        field("standard_error", &S::standard_error, "of the ratio's natural logarithm"),
        field("degrees_of_freedom", &S::degrees_of_freedom, "of Student's t behind the interval"),
        field("run_spread", &S::run_spread, "measured, borrowed from the other side, or assumed"),
        field("assumed_spread", &S::assumed_spread, "relative standard deviation between runs that was assumed"),
        field("p_value", &S::p_value, "two-sided, that the ratio lies within the smallest effect"),
        field("adjusted_p_value", &S::adjusted_p_value, "the same over all pairs of the comparison"),
        field("tested_pairs", &S::tested_pairs, "pairs that it was adjusted for"),
        field("more_runs", &S::more_runs, "a side that would settle an inconclusive pair"),
        field("more_runs_help", &S::more_runs_help, "false: the ratio is about the smallest effect"),
        field("cycle_ratio", &S::cycle_ratio, "ratio of tokens per device and clock cycle"),
        field("cycle_verdict", &S::cycle_verdict, "verdict by clock cycles"));
  }
};

// The times that two trainings to one target quality took.
struct TimeComparison {
  std::optional<Estimate> ratio;  // reference / subject: above 1 the subject needs less; nothing: not comparable
  std::string sentence;           // both times, or why they are not comparable
};

// Why the subject's step is longer or shorter, from the profiles of both.
struct PairCause {
  std::string cause, title;  // "products", "matrix products"
  double seconds = 0;        // per step, subject - reference
  std::string sentence;
};
struct PairCauses {
  std::string sentence = {};  // the largest terms in one line, or why there are none
  double gap_seconds = 0;
  bool resolved = false;
  std::vector<PairCause> terms = {};  // largest first
};

// Subject against reference, both indices into the group's contenders.
struct Pair {
  size_t subject = 0, reference = 0;
  std::vector<Finding> findings;  // of the pair; each contender has its own
  bool comparable = true;         // no error-severity finding of the pair or of either side
  bool versions = false;          // two versions of one framework on one platform (compare/versions.h)
  Fairness fairness = Fairness::comparable;
  std::optional<Estimate> ratio;  // tokens/s per device, subject / reference; even if not comparable
  Verdict verdict = Verdict::inconclusive;
  std::string explanation;                        // the reason for the verdict, with the interval
  std::map<std::string, double> ratios;           // subject / reference of further metrics, by key
  std::optional<LogRatio> measured = {};          // behind `ratio`, of step times, reference / subject; where there is
  std::optional<PairStatistics> statistics = {};  // an interval, and then these are there too
  std::optional<TimeComparison> time_to_train = {};  // where both sides have a target quality
  std::optional<std::string> unquiet = {};           // rates of a side whose runs differ too much for a verdict
  std::optional<PairCauses> causes = {};             // where both sides have a profile (`tprimat why`)
};

// Runs of one model. Different models are never a pair.
struct ModelGroup {
  std::string model;
  std::vector<Contender> contenders;
  std::vector<Pair> pairs;
  bool has_baseline = false;  // the first contender is it, and every pair's reference
  bool against_best = false;  // too many for all pairs: the first is the best, and every pair's reference
};

struct Comparison {
  std::vector<ModelGroup> groups;
  std::vector<SkippedFile> skipped;
  double smallest_effect = 0.01;  // a ratio within 1/(1+this) .. 1+this is "same"
  bool force = false;  // verdicts are printed for pairs that are not comparable, with the reasons beside them
  std::vector<GateResult> gates = {};
};

}  // namespace tprimat::results

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "claim/neighbours.h"
#include "compare/comparison.h"
#include "text/fields.h"
#include "text/json_members.h"

// `tprimat compare --json`, as structs with field lists: its JSON and its schema follow from them. What is withheld is
// null, so that JSON does not show a winner either.
namespace tprimat::results::document {

struct Evidence {
  std::string what, reference, subject;

  static constexpr auto fields() {
    using E = Evidence;
    return field_list(
        field("what", &E::what, "fact that the finding rests on"),
        field("reference", &E::reference, "its value on the reference; of a finding on one run: as stated"),
        field("subject", &E::subject, "its value on the subject; of a finding on one run: as found"));
  }
};

struct Finding {
  std::string code;
  Severity severity = Severity::note;
  std::string sentence, why, remedy;
  std::vector<Evidence> evidence;

  static constexpr auto fields() {
    using F = Finding;
    return field_list(field("code", &F::code, "audit rule, see docs/compare.md"),
                      field("severity", &F::severity, "an error withholds the verdict"),
                      field("sentence", &F::sentence, "finding with its evidence, as a sentence"),
                      field("why", &F::why, "its effect on the comparison; empty: see sentence"),
                      field("remedy", &F::remedy, "action that resolves the finding"),
                      field("evidence", &F::evidence, "values that the finding rests on"));
  }
};

// A metric of a participant.
struct Figure : Estimate {
  std::string unit;

  static constexpr auto fields() {
    using F = Figure;
    return field_list(field("value", &F::value, "the figure, in `unit`"),
                      field("ci95_low", &F::low, "lower end of the 95 % confidence interval; absent: no interval"),
                      field("ci95_high", &F::high, "upper end of the 95 % confidence interval"),
                      field("unit", &F::unit, "unit of the figure; empty: a fraction or a count"));
  }
};

struct DeviceCores {
  Nullable<int64_t> compute_units;
  std::string unit;
  Nullable<int64_t> cores;
  std::string core_kind, source;

  static constexpr auto fields() {
    using D = DeviceCores;
    return field_list(
        field("compute_units", &D::compute_units, "streaming multiprocessors or compute units; null: not known"),
        field("unit", &D::unit, "SMs (NVIDIA) or CUs (AMD): what compute_units counts"),
        field("cores", &D::cores, "lanes of all compute units; null: not known"),
        field("core_kind", &D::core_kind, "CUDA cores or stream processors: what cores counts"),
        field("source", &D::source, "where the counts come from"));
  }
};

struct Contender {
  std::string letter, label;
  std::vector<std::string> files;
  OrderedMap<std::string> facts;
  Nullable<DeviceCores> gpu_cores;
  OrderedMap<Figure> figures;
  std::vector<Finding> findings;
  std::vector<std::string> warnings;
  std::optional<planner::PublishedStanding> published;

  static constexpr auto fields() {
    using C = Contender;
    return field_list(field("letter", &C::letter, "short name, unique within its model"),
                      field("label", &C::label, "name for people, unique within its model"),
                      field("files", &C::files, "result files, one per repetition"),
                      field("facts", &C::facts, "settings by name, as text; 'not known' where a result lacks one"),
                      field("gpu_cores", &C::gpu_cores, "parallel units of one GPU; null: a CPU, or not known"),
                      field("figures", &C::figures, "metrics that are known, by key"),
                      field("findings", &C::findings, "findings of the audit on this participant alone"),
                      field("warnings", &C::warnings, "warnings stored in its results"),
                      field("published", &C::published, "standing among published runs; absent: there are none"));
  }
};

// How much sooner one training reached its target quality.
struct TimeRatio {
  bool comparable = false;
  Nullable<Estimate> ratio;
  std::string sentence;

  static constexpr auto fields() {
    using T = TimeRatio;
    return field_list(field("comparable", &T::comparable, "both reached the same target"),
                      field("ratio", &T::ratio, "time of the reference / time of the subject; null: not comparable"),
                      field("sentence", &T::sentence, "both times, or why they are not comparable"));
  }
};

// Why the subject's step is longer or shorter: the largest terms of `tprimat why`.
struct Cause {
  std::string cause, title;
  double seconds = 0;
  std::string sentence;

  static constexpr auto fields() {
    using C = Cause;
    return field_list(field("cause", &C::cause, "key of the term, see docs/why.md"),
                      field("title", &C::title, "name for people"),
                      field("seconds", &C::seconds, "part of the gap, s per step; positive: the subject is slower"),
                      field("sentence", &C::sentence, "the term with its figures"));
  }
};

struct Causes {
  std::string sentence;
  double gap_seconds = 0;
  bool resolved = false;
  std::vector<Cause> terms;

  static constexpr auto fields() {
    using C = Causes;
    return field_list(field("sentence", &C::sentence, "the largest terms in one line, or why there are none"),
                      field("gap_seconds", &C::gap_seconds, "step of the subject less that of the reference, s"),
                      field("resolved", &C::resolved, "at most 5 % of the gap is unexplained"),
                      field("terms", &C::terms, "the largest terms, at most three"));
  }
};

struct Pair {
  std::string subject, reference;
  bool comparable = true;
  Fairness fairness = Fairness::comparable;
  Nullable<Estimate> rate_ratio;
  Nullable<Verdict> verdict;
  Nullable<Estimate> ratio;
  Nullable<PairStatistics> statistics;
  Nullable<std::string> explanation;
  Nullable<std::map<std::string, double>> ratios;
  std::string headline;
  std::vector<Finding> findings;
  std::optional<bool> versions;
  std::optional<TimeRatio> time_to_train;
  std::optional<Causes> causes;

  static constexpr auto fields() {
    using P = Pair;
    return field_list(
        field("subject", &P::subject, "letter of the participant that is judged"),
        field("reference", &P::reference, "letter of the participant that it is compared with"),
        field("comparable", &P::comparable, "no error of the audit on the pair or on either side"),
        field("fairness", &P::fairness, "conclusion of the audit"),
        field(
            "rate_ratio", &P::rate_ratio,
            "tokens/s per device, subject / reference, also where the verdict is withheld; null: a rate is not known"),
        field("verdict", &P::verdict, "the subject against the reference; null: withheld"),
        field("ratio", &P::ratio, "as rate_ratio; null: withheld, or a rate is not known"),
        field("statistics", &P::statistics, "statistics of the interval and the verdict; null: withheld, or none"),
        field("explanation", &P::explanation, "reason for the verdict, with the interval; null: withheld"),
        field("ratios", &P::ratios, "subject / reference of further metrics, by key; null: withheld"),
        field("headline", &P::headline, "outcome as a sentence"),
        field("findings", &P::findings, "findings of the audit on the pair"),
        field("versions", &P::versions, "true: two versions of one framework on one platform; absent: any other pair"),
        field("time_to_train", &P::time_to_train, "times to a target quality; absent: a side has none"),
        field("causes", &P::causes, "causes of the gap; absent: a side has no profile"));
  }
};

struct ModelGroup {
  std::string model;
  std::vector<Contender> contenders;
  std::vector<Pair> pairs;

  static constexpr auto fields() {
    using M = ModelGroup;
    return field_list(field("model", &M::model, "key of the model"),
                      field("contenders", &M::contenders, "participants: runs, or repetitions of a run"),
                      field("pairs", &M::pairs, "comparisons of two participants"));
  }
};

// A --fail-if condition on one subject.
struct Gate {
  std::string gate, metric;
  GateOperator compare = GateOperator::less;
  double threshold = 0;
  bool relative = false;
  std::string unit, model, baseline, subject;
  Nullable<Estimate> before, after, change;
  GateOutcome outcome = GateOutcome::inconclusive;
  std::string reason, sentence;

  static constexpr auto fields() {
    using G = Gate;
    return field_list(
        field("gate", &G::gate, "condition as given"), field("metric", &G::metric, "key of the metric"),
        field("operator", &G::compare, "a change in this relation to the threshold fails"),
        field("threshold", &G::threshold, "fraction of the baseline if relative, else in the metric's unit"),
        field("relative", &G::relative, "the change is a fraction of the baseline"),
        field("unit", &G::unit, "unit of the threshold and the change; empty: a fraction"),
        field("model", &G::model, "key of the model"), field("baseline", &G::baseline, "label of the baseline"),
        field("subject", &G::subject, "label of the participant that is judged"),
        field("before", &G::before, "metric of the baseline, in its unit; null: not known"),
        field("after", &G::after, "metric of the subject, in its unit; null: not known"),
        field("change", &G::change, "change in the terms of the gate; null: not known"),
        field("outcome", &G::outcome, "result of the gate"), field("reason", &G::reason, "reason for this outcome"),
        field("sentence", &G::sentence, "gate, outcome and figures as a sentence"));
  }
};

struct SkippedFile {
  std::string path, reason;

  static constexpr auto fields() {
    using S = SkippedFile;
    return field_list(field("path", &S::path, "file that is left out"),
                      field("reason", &S::reason, "reason for leaving it out"));
  }
};

struct ComparisonReport {
  int64_t comparison_version = 1;
  double smallest_effect = 0;
  bool forced = false;
  int64_t exit_status = 0;
  std::vector<ModelGroup> groups;
  std::vector<SkippedFile> skipped;
  std::optional<std::vector<Gate>> gates;

  static constexpr auto fields() {
    using C = ComparisonReport;
    return field_list(
        field("comparison_version", &C::comparison_version, "version of this format"),
        field("smallest_effect", &C::smallest_effect, "a ratio within 1 / (1 + this) and 1 + this counts as the same"),
        field("forced", &C::forced, "--force: pairs that are not comparable have verdicts too"),
        field("exit_status", &C::exit_status, "exit status of the command"),
        field("groups", &C::groups, "participants and pairs, by model"),
        field("skipped", &C::skipped, "files that are no results"),
        field("gates", &C::gates, "--fail-if conditions on each subject; absent: none was given"));
  }
};

ComparisonReport describe_comparison(const Comparison& comparison);
std::vector<Gate> describe_gates(const std::vector<GateResult>& results);
std::vector<SkippedFile> describe_skipped(const std::vector<results::SkippedFile>& files);

}  // namespace tprimat::results::document

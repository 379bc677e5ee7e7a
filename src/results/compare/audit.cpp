#include "compare/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compare/contender.h"

namespace tprimat::results {
namespace {

template <class Rule>
Finding make_finding(const Rule& rule, const Proof& proof) {
  return {std::string(rule.code),
          rule.severity,
          std::string(rule.sentence) + (proof.figures.empty() ? "" : ": " + proof.figures),
          std::string(rule.remedy),
          std::string(rule.why),
          proof.evidence};
}

void worst_first(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

const Finding* find_any(const std::vector<Finding>& findings, const RuleCodes& codes) {
  const auto found =
      std::ranges::find_if(findings, [&](const Finding& finding) { return holds_code(codes, finding.code); });
  return found == findings.end() ? nullptr : &*found;
}

// Whether it cancels out of a ratio of MFU.
bool has_one_peak(const Contender& reference, const Contender& subject) {
  const auto& expected = reference.first().derived.peak;
  const auto has_it = [&](const LoadedRun& run) {
    const auto& peak = run.result.derived.peak;
    return peak && peak->flops_per_second == expected->flops_per_second;
  };
  const auto have_it = [&](const Contender& side) { return std::ranges::all_of(side.runs, has_it); };
  return expected && have_it(reference) && have_it(subject);
}

std::optional<std::string> why_doubted(const Metric& metric, const Contender& side, bool one_peak) {
  RuleCodes codes = metric.doubted;
  if (one_peak) std::ranges::replace(codes, std::string_view("other_peak"), std::string_view());
  if (const Finding* finding = find_any(side.findings, codes)) return finding->sentence;
  for (const LoadedRun& run : side.runs)
    for (const Contradiction& each : run.result.contradictions)
      if (!metric.contradicted.empty() && each.what.starts_with(metric.contradicted))
        return fmt::format("the file states {} as {}, but its inputs give {}", each.what, each.stated, each.derived);
  return std::nullopt;
}

std::optional<Proof> check_contender(const RunRule& rule, const Contender& contender) {
  if (const auto* whole = std::get_if<ContenderCheck>(&rule.check)) return (*whole)(contender);
  for (const LoadedRun& run : contender.runs)
    if (auto proof = std::get<RunCheck>(rule.check)(run)) return proof;
  return std::nullopt;
}

// The first proof of several pairs of runs; it names the two files unless all pairs show the same.
class ProofOfRuns {
 public:
  void add(std::optional<Proof> proof, const LoadedRun& reference, const LoadedRun& subject) {
    ++asked_;
    if (!proof) return;
    ++shown_;
    is_one_ = is_one_ && (!first_ || first_->figures == proof->figures);
    if (first_) return;
    first_ = std::move(proof);
    where_ = fmt::format("{} against {}", file_name(reference), file_name(subject));
  }

  std::optional<Proof> take() {
    if (!first_ || (shown_ == asked_ && is_one_)) return std::move(first_);
    const std::string more = shown_ > 1 ? fmt::format(" and {} more pairs of runs", shown_ - 1) : "";
    first_->figures += fmt::format("{}{}{}", first_->figures.empty() ? "" : ", of ", where_, more);
    return std::move(first_);
  }

 private:
  size_t asked_ = 0, shown_ = 0;
  bool is_one_ = true;
  std::optional<Proof> first_;
  std::string where_;
};

// Beyond this many pairs of distinct runs, each run is compared with the first of the other side only, so that the time
// for hundreds of files stays linear.
constexpr size_t k_max_run_pairs = 16;

std::optional<Proof> check_every_run(RunsCheck check, const Contender& reference, const Contender& subject) {
  const std::vector<size_t> ours = distinct_runs(reference), theirs = distinct_runs(subject);
  const bool each_with_each = ours.size() * theirs.size() <= k_max_run_pairs;
  ProofOfRuns proof;
  for (size_t i = 0; i < ours.size(); ++i)
    for (size_t k = 0; k < theirs.size(); ++k) {
      if (!each_with_each && i > 0 && k > 0) break;
      const LoadedRun &a = reference.runs[ours[i]], &b = subject.runs[theirs[k]];
      proof.add(check(a.result, b.result), a, b);
    }
  return proof.take();
}

std::optional<Proof> check_pair(const PairRule& rule, const Sides& sides) {
  if (const auto* of_runs = std::get_if<RunsCheck>(&rule.check))
    return check_every_run(*of_runs, sides.reference, sides.subject);
  return std::get<SidesCheck>(rule.check)(sides);
}

std::optional<Proof> check_two_runs(const PairRule& rule, const LoadedRun& first, const LoadedRun& other,
                                    const AuditOptions& options) {
  if (const auto* of_runs = std::get_if<RunsCheck>(&rule.check)) return (*of_runs)(first.result, other.result);
  Contender reference, subject;
  reference.runs.push_back(first), subject.runs.push_back(other);
  return std::get<SidesCheck>(rule.check)({reference, subject, options});
}

// Compares each repetition with the first. A rule for whole sides needs a severity for repetitions, and then checks all
// runs.
std::optional<Proof> check_against_first(const PairRule& rule, const Contender& contender,
                                         const std::vector<size_t>& distinct, const AuditOptions& options) {
  const bool is_of_runs = std::holds_alternative<RunsCheck>(rule.check);
  if (!is_of_runs && !rule.of_repetitions) return std::nullopt;
  ProofOfRuns proof;
  const LoadedRun& first = contender.runs.front();
  proof.add(std::nullopt, first, first);  // the finding always names the two files
  std::vector<size_t> checked = distinct;
  if (!is_of_runs) {
    checked.resize(std::min(k_max_run_pairs + 1, contender.runs.size()));
    std::iota(checked.begin(), checked.end(), size_t{0});
  }
  for (const size_t i : checked)
    if (i != 0) proof.add(check_two_runs(rule, first, contender.runs[i], options), first, contender.runs[i]);
  return proof.take();
}

// Applies the rules of pairs to the repetitions of one participant.
void audit_repetitions(const Contender& contender, const AuditOptions& options, std::vector<Finding>& findings) {
  const std::vector<size_t> runs = distinct_runs(contender);
  for (const PairRule& rule : pair_rules()) {
    const auto proof = check_against_first(rule, contender, runs, options);
    if (!proof) continue;
    Finding finding = make_finding(rule, *proof);
    finding.code = k_runs_differ;
    finding.severity = rule.of_repetitions.value_or(rule.severity);
    finding.sentence = "the repetitions are not the same experiment: " + finding.sentence;
    finding.why = "their mean mixes different configurations";
    finding.remedy = "give runs with other settings another name";
    findings.push_back(std::move(finding));
  }
}

}  // namespace

std::vector<Finding> audit_contender(const Contender& contender, const AuditOptions& options) {
  std::vector<Finding> findings;
  for (const RunRule& rule : run_rules())
    if (const auto proof = check_contender(rule, contender)) findings.push_back(make_finding(rule, *proof));
  audit_repetitions(contender, options, findings);
  worst_first(findings);
  return findings;
}

std::vector<Finding> find_run_errors(LoadedRun& run) {
  Contender alone;
  alone.runs.push_back(std::move(run));
  std::vector<Finding> findings;
  for (const RunRule& rule : run_rules()) {
    if (rule.severity != Severity::error) continue;
    if (const auto proof = check_contender(rule, alone)) findings.push_back(make_finding(rule, *proof));
  }
  run = std::move(alone.runs.front());
  return findings;
}

std::vector<Finding> audit_pair(const Contender& reference, const Contender& subject, const AuditOptions& options) {
  std::vector<Finding> findings;
  for (const PairRule& rule : pair_rules())
    if (const auto proof = check_pair(rule, {reference, subject, options}))
      findings.push_back(make_finding(rule, *proof));
  worst_first(findings);
  return findings;
}

Proof::Proof(std::vector<Evidence> shown) : evidence(std::move(shown)) {
  for (const Evidence& each : evidence)
    figures += fmt::format("{}{}{}{} against {}", figures.empty() ? "" : ", ", each.what, each.what.empty() ? "" : " ",
                           each.reference, each.subject);
}

Fairness judge_fairness(const std::vector<Finding>& of_pair, const Contender& reference, const Contender& subject) {
  Severity worst = Severity::note;
  for (const auto* findings : {&of_pair, &reference.findings, &subject.findings})
    for (const Finding& each : *findings) worst = std::max(worst, each.severity);
  if (worst == Severity::error) return Fairness::not_comparable;
  return worst == Severity::warning ? Fairness::with_notes : Fairness::comparable;
}

bool has_error(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const Finding& each) { return each.severity == Severity::error; });
}

std::optional<std::string> why_not_compared(const Metric& metric, const std::vector<Finding>& findings,
                                            const Contender& reference, const Contender& subject) {
  if (const Finding* finding = find_any(findings, metric.unlike))
    return fmt::format("the figure means different things on the two sides: {}", finding->sentence);
  for (const Contender* side : {&reference, &subject})
    if (const auto why = why_doubted(metric, *side, has_one_peak(reference, subject)))
      return fmt::format("the figure of {} is in doubt: {}", side->label, *why);
  return std::nullopt;
}

}  // namespace tprimat::results

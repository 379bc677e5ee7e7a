#include "why/pipeline_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include "why/term_series.h"

namespace tprimat::results {
namespace {

constexpr double k_min_share = 0.05;  // of the gap: a smaller term is no finding

struct Subject {
  Cause cause;
  std::string_view name, remedy;
};
constexpr Subject k_waiting{Cause::waiting, "waiting in the pipeline",
                            "see the bubble and the stragglers of each side alone: tprimat why FOLDER"};
constexpr Subject k_work{Cause::work, "work (computation of the mean worker)",
                         "compare the layers and micro-batches of the stages"};

LedgerSide describe_side(const PipelineSide& side) {
  const PipelineReport& report = side.report;
  LedgerSide facts;
  facts.label = side.label, facts.files = side.files;
  facts.ranks = std::ssize(report.workers), facts.steps = report.steps;
  facts.step_seconds = report.step_seconds;
  facts.busy_seconds = (1 - report.bubble) * report.step_seconds;
  facts.idle_seconds = report.bubble * report.step_seconds;
  return facts;
}

void add_terms(Ledger& ledger, const PipelineReport& a, const PipelineReport& b) {
  add_empty_terms(ledger);
  LedgerTerm& work = ledger.term(Cause::work);
  work.a_seconds = *ledger.a.busy_seconds, work.b_seconds = *ledger.b.busy_seconds;
  work.seconds = work.b_seconds - work.a_seconds;
  const double a_bubble = a.balanced_bubble * a.step_seconds, b_bubble = b.balanced_bubble * b.step_seconds;
  LedgerTerm& waiting = ledger.term(Cause::waiting);
  add_part(waiting, "bubble of the schedule", a_bubble, b_bubble);
  add_part(waiting, "waiting for slower workers", *ledger.a.idle_seconds - a_bubble, *ledger.b.idle_seconds - b_bubble);
  waiting.details = largest_details(std::move(waiting.details));
  close_ledger(ledger);
}

void add_finding(Ledger& ledger, const Subject& subject) {
  LedgerTerm& term = ledger.term(subject.cause);
  if (std::fabs(term.seconds) <= k_min_share * std::fabs(ledger.gap_seconds) || term.seconds == 0) return;
  term.sentence = fmt::format("{}: {:+.1f} ms per step", subject.name, term.seconds * 1e3);
  if (term.details.empty())
    term.sentence += fmt::format("; {:.1f} ms in A, {:.1f} ms in B", term.a_seconds * 1e3, term.b_seconds * 1e3);
  else
    term.sentence +=
        fmt::format("; mostly {}: {:+.1f} ms", term.details.front().what, term.details.front().seconds * 1e3);
  term.remedy = subject.remedy;
  ledger.findings.push_back(term.sentence + "; " + term.remedy);
}

}  // namespace

Ledger make_pipeline_ledger(const PipelineSide& a, const PipelineSide& b) {
  Ledger ledger;
  ledger.a = describe_side(a), ledger.b = describe_side(b);
  ledger.gap_seconds = ledger.b.step_seconds - ledger.a.step_seconds;
  add_terms(ledger, a.report, b.report);
  std::array subjects{k_waiting, k_work};
  std::ranges::stable_sort(subjects, std::greater<>(),
                           [&](const Subject& each) { return std::fabs(ledger.term(each.cause).seconds); });
  for (const Subject& each : subjects) add_finding(ledger, each);
  ledger.notes = {"the records state only forward and backward computations: waiting includes communication"};
  return ledger;
}

}  // namespace tprimat::results

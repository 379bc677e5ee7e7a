#include "why/pipeline_ledger.h"

#include <map>

#include "why/sums.h"

namespace tprimat::results {
namespace {

std::map<Cause, double> split_pipeline(const PipelineReport& report) {
  const double bubble = report.bubble * report.step_seconds;
  return {{Cause::work, report.step_seconds - bubble}, {Cause::waiting, bubble}};
}

void add_bubble_details(Ledger& ledger, const PipelineReport& a, const PipelineReport& b) {
  SumDetails details;
  for (const PipelineReport* report : {&a, &b}) {
    const double balanced = report->balanced_bubble * report->step_seconds;
    details.add("bubble of the schedule", balanced, {}, report == &b);
    details.add("waiting for slower workers", report->bubble * report->step_seconds - balanced, {}, report == &b);
  }
  term_of(ledger, Cause::waiting).details = details.take();
}

}  // namespace

Ledger make_pipeline_ledger(const PipelineSide& a, const PipelineSide& b) {
  Ledger ledger;
  ledger.a = describe_sums(a.label, a.files, a.report.step_seconds);
  ledger.b = describe_sums(b.label, b.files, b.report.step_seconds);
  for (const auto& [side, report] : {std::pair(&ledger.a, &a.report), std::pair(&ledger.b, &b.report)}) {
    side->steps = report->steps, side->ranks = std::ssize(report->workers);
    side->busy_seconds = (1 - report->bubble) * report->step_seconds;
    side->idle_seconds = report->bubble * report->step_seconds;
  }
  ledger.gap_seconds = ledger.b.step_seconds - ledger.a.step_seconds;
  add_sum_terms(ledger, split_pipeline(a.report), split_pipeline(b.report));
  add_bubble_details(ledger, a.report, b.report);
  write_sum_sentences(ledger);
  ledger.notes = {"the records state forward and backward computations alone: communication is part of waiting"};
  return ledger;
}

}  // namespace tprimat::results

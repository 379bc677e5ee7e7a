#include "why/totals_ledger.h"

#include <array>
#include <map>

#include "base/error.h"
#include "text/format.h"
#include "why/match_work.h"
#include "why/sentences.h"
#include "why/term_series.h"

namespace tprimat::results {
namespace {

using logs::KernelClass;

struct Totals {
  double span = 0, compute = 0, communication = 0, copy = 0, idle = 0;
  std::map<KernelClass, logs::KernelTotal> classes;  // calls and summed durations of kernels
  double kernels = 0;                                // s, of those that compute
};

bool computes(KernelClass kernel_class) {
  return kernel_class != KernelClass::collective && kernel_class != KernelClass::copy;
}

Totals totals_of(const TotalsInput& input) {
  const logs::Timeline& timeline = input.totals.timeline;
  if (!timeline.span_seconds || !timeline.compute_seconds)
    throw Error(
        {"the report lacks the total time or the computation time", input.label, "give a report with gpu_timeline"});
  Totals totals;
  totals.span = *timeline.span_seconds, totals.compute = *timeline.compute_seconds;
  totals.communication = timeline.exposed_communication_seconds.value_or(0.0);
  totals.copy = timeline.exposed_copy_seconds.value_or(0.0);
  totals.idle = timeline.idle_seconds.value_or(0.0);
  for (const logs::KernelTotal& kernel : input.totals.kernels) {
    logs::KernelTotal& sum = totals.classes[kernel.kernel_class];
    sum.calls += kernel.calls, sum.total_seconds += kernel.total_seconds;
    if (computes(kernel.kernel_class)) totals.kernels += kernel.total_seconds;
  }
  return totals;
}

class TotalsLedger {
 public:
  TotalsLedger(const TotalsInput& a, const TotalsInput& b) : a_(a), b_(b), left_(totals_of(a)), right_(totals_of(b)) {}

  Ledger make() {
    set_sides();
    add_empty_terms(ledger_);
    add_compute();
    add(Cause::communication, "exposed communication", left_.communication, right_.communication);
    add(Cause::memory_bound, "exposed copies", left_.copy, right_.copy);
    add(Cause::launch, "idle for a reason that the report lacks", left_.idle, right_.idle);
    add_details();
    close_ledger(ledger_);
    ledger_.notes.emplace_back(
        "the reports state sums over whole recordings: a step here is a whole recording, without intervals");
    write_sentences(ledger_);
    return std::move(ledger_);
  }

 private:
  void set_sides() {
    const auto set = [](LedgerSide& side, const TotalsInput& input, const Totals& totals) {
      side.label = input.label, side.files = {input.file}, side.steps = 1;
      side.step_seconds = totals.span;
      side.busy_seconds = totals.span - totals.idle, side.idle_seconds = totals.idle;
      const auto& all = input.totals.timeline.communication_seconds;
      if (all) side.hidden_communication_seconds = std::max(0.0, *all - totals.communication);
    };
    set(ledger_.a, a_, left_), set(ledger_.b, b_, right_);
    ledger_.gap_seconds = right_.span - left_.span;
  }

  void add(Cause cause, const std::string& what, double a, double b) { add_part(ledger_.term(cause), what, a, b); }

  // Streams overlap, so each class has its share of the time in which anything was computed.
  void add_compute() {
    std::map<KernelClass, std::pair<logs::KernelTotal, logs::KernelTotal>> classes;
    for (const auto& [kernel_class, total] : left_.classes) classes[kernel_class].first = total;
    for (const auto& [kernel_class, total] : right_.classes) classes[kernel_class].second = total;
    for (const auto& [kernel_class, pair] : classes) {
      const auto& [a, b] = pair;
      ledger_.classes.push_back(
          {kernel_class, a.total_seconds, b.total_seconds, static_cast<double>(a.calls), static_cast<double>(b.calls)});
      if (!computes(kernel_class) || left_.kernels <= 0 || right_.kernels <= 0) continue;
      add(cause_of(kernel_class), std::string(enum_name(kernel_class)), a.total_seconds / left_.kernels * left_.compute,
          b.total_seconds / right_.kernels * right_.compute);
    }
  }

  // What stands behind communication: durations, of which a part is hidden.
  void add_details() {
    struct Pair {
      const logs::CollectiveTotal *a = nullptr, *b = nullptr;
    };
    std::map<logs::CollectiveCall, Pair> calls;
    for (const logs::CollectiveTotal& each : a_.totals.collectives) calls[each.call].a = &each;
    for (const logs::CollectiveTotal& each : b_.totals.collectives) calls[each.call].b = &each;
    std::vector<LedgerDetail> details;
    for (const auto& [call, pair] : calls) {
      LedgerDetail detail;
      detail.what = fmt::format("{} of {} over {} ranks, hidden part included", call.operation,
                                format_si(static_cast<double>(call.bytes), "B"), call.group_size);
      if (pair.a != nullptr)
        detail.a_seconds = pair.a->total_seconds, detail.a_calls = static_cast<double>(pair.a->calls);
      if (pair.b != nullptr)
        detail.b_seconds = pair.b->total_seconds, detail.b_calls = static_cast<double>(pair.b->calls);
      detail.seconds = detail.b_seconds.value_or(0.0) - detail.a_seconds.value_or(0.0);
      details.push_back(std::move(detail));
    }
    LedgerTerm& communication = ledger_.term(Cause::communication);
    for (LedgerDetail& each : largest_details(std::move(details))) communication.details.push_back(std::move(each));
    for (LedgerTerm& each : ledger_.terms)
      if (each.cause != Cause::communication) each.details = largest_details(std::move(each.details));
  }

  const TotalsInput &a_, &b_;
  Totals left_, right_;
  Ledger ledger_;
};

}  // namespace

Ledger make_totals_ledger(const TotalsInput& a, const TotalsInput& b) { return TotalsLedger(a, b).make(); }

}  // namespace tprimat::results

#include "cli/why_against.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "planner/own_results.h"
#include "planner/step_time.h"
#include "report/why_report.h"
#include "why/sentences.h"

namespace tprimat::cli {
namespace {

using planner::Rates, planner::StepTime, results::Cause;

// Nothing is lost to starting, waiting, small or misaligned shapes, and every exchange hides.
Rates raise_to_peaks(Rates rates, const planner::Machine& machine, const planner::Workload& workload) {
  rates.product_16 = machine.peak_16, rates.product_low = machine.peak(workload.precision);
  rates.saturation_16 = rates.saturation_low = 0;
  rates.misaligned = rates.misaligned_head = 1;
  rates.attention = machine.peak_16, rates.attention_start = rates.attention_width = 0;
  rates.attention_backward = 1, rates.context_cost = 0;
  rates.memory = machine.memory_bandwidth, rates.link = machine.link_bandwidth;
  rates.network = machine.network_bandwidth;
  rates.link_latency = rates.exchange_latency = rates.gather_latency = 0;
  rates.tensor_overlap = rates.data_overlap = rates.sharded_overlap = rates.expert_overlap = 1;
  rates.data_leak = rates.transfer_share = 0;
  rates.layer_overhead = rates.layer_start = rates.step_start = rates.node_start = rates.straggling = 0;
  rates.grouped = rates.latent = rates.adapters = rates.scale = 1;
  rates.grouped_saturation = 0, rates.expert_launch = rates.cast_launch = 0;
  rates.near_runs = {};
  const double cores = static_cast<double>(std::max<int64_t>(1, machine.cores));
  rates.native.product = rates.native.attention = machine.peak(workload.precision) / cores;
  rates.native.saturation = rates.native.split = rates.native.call = rates.native.thread_call = 0;
  rates.native.message = rates.native.turn = rates.native.crowd = rates.native.step_start = 0;
  rates.native.scale = 1;
  return rates;
}

// Recomputation has the mix of the forward pass.
std::map<Cause, double> sort_expected(const StepTime& step) {
  const double computing = step.products + step.attention + step.elementwise + step.ends;
  const double more = computing > 0 ? 1 + step.recompute / computing : 1;
  return {{Cause::products, (step.products + step.ends) * more},
          {Cause::attention, step.attention * more},
          {Cause::memory_bound, step.elementwise * more + step.optimizer},
          {Cause::communication, step.tensor + step.context + step.experts + step.transfers + step.data},
          {Cause::waiting, step.bubble},
          {Cause::launch, step.overhead}};
}

std::string state_term(const results::LedgerTerm& term, Expectation expectation) {
  return fmt::format("{}: {:.3g} ms where {} {:.3g} ms.", results::cause_title(term.cause), term.b_seconds * 1e3,
                     expectation == Expectation::planner ? "the planner expects" : "the roofline allows",
                     term.a_seconds * 1e3);
}

// Each once: both sides of the ledger were the same. What it says of findings was of two equal sides.
void keep_notes(results::Ledger& ledger) {
  std::vector<std::string> notes;
  for (std::string& note : ledger.notes)
    if (!note.starts_with(results::k_no_cause) && std::ranges::find(notes, note) == notes.end())
      notes.push_back(std::move(note));
  ledger.notes = std::move(notes);
}

StepTime expect_step(const results::SideInput& side, Expectation expectation, const planner::ParameterSet& parameters) {
  const auto own = planner::observe_results({{side.files.front(), *side.result}}, {});
  if (!own.front().observed)
    throw Error(Problem{"cannot be predicted: " + own.front().missing, side.files.front(),
                        "compare it with another result instead"});
  const planner::Observation& seen = *own.front().observed;
  Rates rates = planner::resolve_rates(parameters, seen.machine, seen.workload);
  if (expectation == Expectation::roofline) rates = raise_to_peaks(std::move(rates), seen.machine, seen.workload);
  return planner::time_step(seen.workload, seen.machine, rates);
}

}  // namespace

results::Ledger explain_against(const results::SideInput& side, Expectation expectation,
                                const planner::ParameterSet& parameters) {
  if (!side.result)
    throw Error(Problem{"is no result, so its settings are not known", side.label,
                        "name a result of tprimat run --profile-steps 3"});
  const StepTime expected = expect_step(side, expectation, parameters);
  const std::map<Cause, double> parts = sort_expected(expected);
  results::Ledger ledger = results::make_ledger(side, side);  // its own kinds of time
  ledger.a = {.label = expectation == Expectation::planner ? "the planner" : "the roofline", .ranks = 0};
  ledger.a.step_seconds = expected.total();
  ledger.gap_seconds = ledger.b.step_seconds - ledger.a.step_seconds;
  ledger.low = ledger.high = std::nullopt;
  ledger.classes.clear(), ledger.findings.clear();
  keep_notes(ledger);
  double rest = ledger.gap_seconds;
  for (results::LedgerTerm& term : ledger.terms) {
    const auto part = parts.find(term.cause);
    term.a_seconds = part == parts.end() ? 0 : part->second;
    term.seconds = term.cause == Cause::unexplained ? rest : term.b_seconds - term.a_seconds;
    term.low = term.high = std::nullopt;
    term.remedy.clear();
    term.sentence = term.cause == Cause::unexplained ? "" : state_term(term, expectation);
    for (results::LedgerDetail& detail : term.details)
      detail.seconds = detail.b_seconds.value_or(0), detail.a_seconds.reset();
    rest -= term.seconds;
  }
  ledger.resolved = std::fabs(results::remainder_of(ledger)) <= 0.05 * std::fabs(ledger.gap_seconds);
  return ledger;
}

}  // namespace tprimat::cli

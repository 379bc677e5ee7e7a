#include "why/make_ledger.h"

#include <algorithm>
#include <cmath>

#include "text/format.h"
#include "why/checks.h"
#include "why/match_work.h"
#include "why/sentences.h"
#include "why/side.h"
#include "why/term_series.h"

namespace tprimat::results {
namespace {

constexpr double k_share_on_processors = 0.03;  // of a step

// Micro-batches of B over those of A, where the runs state both and each rank trains the same tokens per step.
std::optional<double> micro_batch_ratio(const SideInput& a, const SideInput& b) {
  if (!a.result || !b.result) return std::nullopt;
  const TrainingConfig &left = a.result->training_config, &right = b.result->training_config;
  const ParallelismConfig &one = a.result->parallelism_config, &two = b.result->parallelism_config;
  const bool same_tokens = left.global_batch_size && left.global_batch_size == right.global_batch_size &&
                           left.sequence_length == right.sequence_length &&
                           one.data_parallel_size.value_or(1) == two.data_parallel_size.value_or(1);
  if (!same_tokens || !left.micro_batch_size || !right.micro_batch_size) return std::nullopt;
  if (*left.micro_batch_size < 1 || *right.micro_batch_size < 1) return std::nullopt;
  if (*left.micro_batch_size == *right.micro_batch_size) return std::nullopt;
  return static_cast<double>(*left.micro_batch_size) / static_cast<double>(*right.micro_batch_size);
}

std::vector<LedgerClass> classes_of(const StepWork& a, const StepWork& b) {
  std::vector<LedgerClass> classes;
  for (size_t i = 0; i < a.classes.size(); ++i)
    if (a.classes[i].calls > 0 || b.classes[i].calls > 0)
      classes.push_back({static_cast<logs::KernelClass>(i), a.classes[i].seconds, b.classes[i].seconds,
                         a.classes[i].calls, b.classes[i].calls});
  std::ranges::stable_sort(classes, std::greater<>(),
                           [](const LedgerClass& each) { return std::max(each.a_seconds, each.b_seconds); });
  return classes;
}

// "; recompute none in A, full in B": what the settings say about the work.
std::string describe_settings(const SideInput& a, const SideInput& b) {
  if (!a.result || !b.result) return "";
  std::string text;
  const auto add = [&](std::string_view name, const std::string& one, const std::string& two) {
    if (!one.empty() && !two.empty() && one != two) text += fmt::format("; {} {} in A, {} in B", name, one, two);
  };
  const auto number = [](const std::optional<int64_t>& value) { return value ? std::to_string(*value) : ""; };
  const TrainingConfig &left = a.result->training_config, &right = b.result->training_config;
  add("global batch size", number(left.global_batch_size), number(right.global_batch_size));
  add("micro-batch size", number(left.micro_batch_size), number(right.micro_batch_size));
  add("sequence length", number(left.sequence_length), number(right.sequence_length));
  add("recompute", left.recompute.value_or(""), right.recompute.value_or(""));
  add("precision", a.result->precision ? std::string(enum_name(*a.result->precision)) : "",
      b.result->precision ? std::string(enum_name(*b.result->precision)) : "");
  return text;
}

// "; products reach 72 % in A and 61 % in B of the rate that their sizes reach alone"
std::string describe_rates(const Side& a, const Side& b, std::span<const ProductRate> rates) {
  const auto of_b = share_of_rates(b.work, rates);
  if (!of_b) return "";
  const bool same_device = a.facts.device && a.facts.device == b.facts.device;
  const auto of_a = same_device ? share_of_rates(a.work, rates) : std::nullopt;
  return fmt::format("; products reach {}{} in B of the rate that their sizes reach alone",
                     of_a ? format_percent(*of_a, 0) + " in A and " : "", format_percent(*of_b, 0));
}

LedgerTerm make_term(Cause cause, TermSeries series) {
  LedgerTerm term;
  term.cause = cause;
  term.seconds = series.value();
  if (const auto interval = interval_of(series)) term.low = interval->low, term.high = interval->high;
  term.a_seconds = series.a_seconds, term.b_seconds = series.b_seconds;
  term.details = std::move(series.details);
  return term;
}

void add_outliers(LedgerTerm& term, const Side& a, const Side& b) {
  term.seconds += b.outliers - a.outliers;
  term.a_seconds += a.outliers, term.b_seconds += b.outliers;
  if (a.outliers != 0 || b.outliers != 0) term.low = term.high = std::nullopt;
  for (const Side* side : {&a, &b})
    if (side->slow_steps > 0)
      term.details.push_back(
          {fmt::format("{} of {}: {} slow steps", side == &a ? "A" : "B", side->facts.label, side->slow_steps),
           side == &a ? -a.outliers : b.outliers, std::nullopt, std::nullopt, std::nullopt, std::nullopt});
}

void set_gap_interval(Ledger& ledger, const Side& a, const Side& b) {
  if (a.facts.low && a.facts.high && b.facts.low && b.facts.high) {
    const Interval interval = difference_interval({b.facts.step_seconds, {*b.facts.low, *b.facts.high}},
                                                  {a.facts.step_seconds, {*a.facts.low, *a.facts.high}});
    ledger.low = interval.low, ledger.high = interval.high;
  } else if (const auto interval = interval_of({a.work.step_seconds, b.work.step_seconds, {}, 0, 0})) {
    ledger.low = interval->low, ledger.high = interval->high;
  }
}

void note_intervals(Ledger& ledger, const Side& a, const Side& b) {
  for (const Side* side : {&a, &b}) {
    if (side->work.step_seconds.size() == 1)
      ledger.notes.push_back(
          fmt::format("{}: only one step is recorded, so the terms have no intervals", side->facts.label));
    const double after = mean_of(side->work.after_mark);
    if (after > 0.1 * side->typical)
      ledger.notes.push_back(
          fmt::format("{}: the device works for another {} per step after the last step ends on the host: the host "
                      "runs ahead, and its steps are shorter than the device's",
                      side->facts.label, format_duration(after)));
    ledger.notes.insert(ledger.notes.end(), side->notes.begin(), side->notes.end());
  }
}

// Processors are shared with other programs: a note says where everything takes longer in B.
FindingBounds bounds_of(Ledger& ledger, const Side& a, const Side& b, const WorkMatch& match) {
  FindingBounds bounds;
  if (a.work.on_gpu || b.work.on_gpu) return bounds;
  bounds.share_of_step = k_share_on_processors;
  const auto stalls = [](const Side& side) { return mean_of(side.work.moment(Moment::stall)); };
  bounds.stalls = stalls(b) - stalls(a);
  if (std::abs(bounds.stalls) >= bounds.share_of_step * std::min(a.typical, b.typical))
    ledger.notes.push_back(fmt::format("operations stalled for {} per step in A and {} in B because other programs ran",
                                       format_duration(stalls(a)), format_duration(stalls(b))));
  if (!match.uniform_factor || std::abs(*match.uniform_factor - 1.0) < 0.02) return bounds;
  bounds.uniform = match.uniform_factor;
  ledger.notes.push_back(
      fmt::format("operations of all kinds take {} times as long in B: its CPU is {}, or other programs take {} of it",
                  format_significant(*match.uniform_factor, 3), *match.uniform_factor > 1 ? "slower" : "faster",
                  *match.uniform_factor > 1 ? "more" : "less"));
  return bounds;
}

}  // namespace

Ledger make_ledger(const SideInput& a, const SideInput& b, std::span<const ProductRate> rates) {
  const Side left = prepare_side(a), right = prepare_side(b);
  check_same_model(a, b, left, right);
  const WorkMatch match = match_work(left.work, right.work, micro_batch_ratio(a, b));
  std::vector<TermSeries> series = add_up_terms(left, right, match);
  Ledger ledger;
  ledger.a = left.facts, ledger.b = right.facts;
  ledger.gap_seconds = right.facts.step_seconds - left.facts.step_seconds;
  set_gap_interval(ledger, left, right);
  for (size_t i = 0; i < series.size(); ++i)
    ledger.terms.push_back(make_term(static_cast<Cause>(i), std::move(series[i])));
  add_outliers(ledger.term(Cause::outliers), left, right);
  ledger.classes = classes_of(left.work, right.work);
  close_ledger(ledger);
  note_intervals(ledger, left, right);
  const std::string settings = describe_settings(a, b);
  std::map<Cause, std::string> facts = further_facts(ledger, left, right, match, settings);
  facts[Cause::products] = describe_rates(left, right, rates);
  write_sentences(ledger, facts, bounds_of(ledger, left, right, match));
  if (!settings.empty() && ledger.term(Cause::work).sentence.empty())
    ledger.notes.push_back("the settings differ:" + settings.substr(1));
  return ledger;
}

}  // namespace tprimat::results

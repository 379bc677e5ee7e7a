#include "why/term_series.h"

#include <algorithm>
#include <cmath>

#include "stats/descriptive.h"
#include "stats/log_ratio.h"
#include "why/sentences.h"

namespace tprimat::results {
namespace {

constexpr size_t k_causes = enum_values<Cause>().size();
constexpr size_t k_max_details = 20;
constexpr size_t k_series = 12;  // steps; fewer tell nothing of how they depend on each other
constexpr double k_same_clock = 0.01;
constexpr double k_unresolved = 0.05;  // of the gap

void add_times(std::vector<double>& to, const std::vector<double>& values, double factor) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += factor * values[i];
}

void add_optional(std::optional<double>& to, const std::optional<double>& value) {
  if (value) to = to.value_or(0.0) + *value;
}

class TermAdder {
 public:
  TermAdder(const Side& a, const Side& b) : a_(a), b_(b), terms_(k_causes) {
    for (TermSeries& term : terms_)
      term.a.assign(a.work.step_seconds.size(), 0.0), term.b.assign(b.work.step_seconds.size(), 0.0);
    set_clocks();
  }

  std::vector<TermSeries> add(const WorkMatch& match) {
    for (const WorkShare& share : match.shares) add_share(share);
    add_moments(Moment::waiting, Cause::waiting, "waiting in collectives");
    add_moments(Moment::data, Cause::data, "waiting for input");
    add_moments(Moment::synchronisation, Cause::synchronisation, "waiting for the device, copies, allocation");
    add_moments(Moment::host, Cause::launch, "gaps of the host of more than 1 ms");
    add_moments(Moment::first, Cause::launch, "host before the first operation of a step");
    add_moments(Moment::last, Cause::launch, "host after the last operation of a step");
    add_moments(Moment::stall, Cause::outliers, "stalled operations: other programs ran");
    add_moments(Moment::collection, Cause::launch, "garbage collection");
    add_moments(Moment::latency, Cause::launch, "kernels launched but not started");
    add_moments(Moment::idle, Cause::launch, std::string(k_bare_idle));
    add_after_mark();
    for (TermSeries& term : terms_) term.details = largest_details(std::move(term.details));
    return std::move(terms_);
  }

 private:
  TermSeries& term(Cause cause) { return terms_[static_cast<size_t>(cause)]; }

  // A product's time goes with 1 / clock. Clocks of different devices say nothing about each other.
  void set_clocks() {
    if (!a_.clock_hz || !b_.clock_hz || a_.facts.device != b_.facts.device) return;
    const double a = *a_.clock_hz, b = *b_.clock_hz, between = std::sqrt(a * b);
    if (std::abs(b / a - 1.0) < k_same_clock) return;
    clocks_ = {1.0 - a / between, 1.0 - b / between, std::max(0.0, 1.0 - a / b), std::max(0.0, 1.0 - b / a)};
  }

  void add_share(const WorkShare& share) {
    const bool by_clock = clocks_.a != 0 && (share.cause == Cause::products || share.cause == Cause::attention);
    if (by_clock) add_rows(Cause::clocks, share, clocks_);
    const ShareFactors rest = {1.0 - clocks_.a, 1.0 - clocks_.b, 1.0 - clocks_.a_part, 1.0 - clocks_.b_part};
    add_rows(share.cause, share, by_clock ? rest : ShareFactors{1, 1, 1, 1});
    add_gaps(share);
  }

  // "aten::mm [8,4] [4,2], in A aten::mm [4,4] [4,2]"
  std::string describe(const WorkShare& share) const {
    if (!share.what.empty()) return share.what;
    const WorkRow *a = row(a_, share.a_row), *b = row(b_, share.b_row);
    const std::string of_a = a == nullptr ? "" : describe_key(a->key), of_b = b == nullptr ? "" : describe_key(b->key);
    return of_a.empty() || of_b.empty() || of_a == of_b ? of_b.empty() ? of_a : of_b : of_b + ", in A " + of_a;
  }

  void add_rows(Cause cause, const WorkShare& share, const ShareFactors& of_share) {
    const WorkRow *a = row(a_, share.a_row), *b = row(b_, share.b_row);
    TermSeries& to = term(cause);
    LedgerDetail detail;
    detail.what = describe(share);
    if (a != nullptr) {
      const double factor = of_share.a * share.work.a;
      add_times(to.a, a->seconds, factor);
      detail.a_seconds = a->mean_seconds(), detail.a_calls = a->calls;
      detail.seconds -= factor * *detail.a_seconds;
      to.a_seconds += of_share.a_part * share.work.a_part * *detail.a_seconds;
    }
    if (b != nullptr) {
      const double factor = of_share.b * share.work.b;
      add_times(to.b, b->seconds, factor);
      detail.b_seconds = b->mean_seconds(), detail.b_calls = b->calls;
      detail.seconds += factor * *detail.b_seconds;
      to.b_seconds += of_share.b_part * share.work.b_part * *detail.b_seconds;
    }
    to.details.push_back(std::move(detail));
  }

  // The Python and the launch before work that only one side does belong to that work. A long gap is rather an event of
  // its own, unless it comes again with each micro-batch or recomputation.
  void add_gaps(const WorkShare& share) {
    const WorkRow *a = row(a_, share.a_row), *b = row(b_, share.b_row);
    const bool repeats =
        share.gap_cause == Cause::micro_batches || (b != nullptr ? b : a)->key.phase == logs::Phase::recompute;
    add_gaps(share.gap_cause, &WorkRow::gap_seconds, share, "host and launch before each operation");
    add_gaps(repeats ? share.gap_cause : Cause::launch, &WorkRow::long_seconds, share,
             "host gap of more than 1 ms before " + describe(share));
  }

  void add_gaps(Cause cause, std::vector<double> WorkRow::*series, const WorkShare& share, const std::string& launch) {
    const WorkRow *a = row(a_, share.a_row), *b = row(b_, share.b_row);
    const double a_seconds = a == nullptr ? 0.0 : mean_of(a->*series);
    const double b_seconds = b == nullptr ? 0.0 : mean_of(b->*series);
    if (a_seconds == 0 && b_seconds == 0) return;
    TermSeries& to = term(cause);
    if (a != nullptr) add_times(to.a, a->*series, share.gaps.a);
    if (b != nullptr) add_times(to.b, b->*series, share.gaps.b);
    to.a_seconds += share.gaps.a_part * a_seconds, to.b_seconds += share.gaps.b_part * b_seconds;
    const std::string what = cause == Cause::launch ? launch : "host and launch before " + describe(share);
    to.details.push_back(
        {what, share.gaps.b * b_seconds - share.gaps.a * a_seconds, a_seconds, b_seconds, std::nullopt, std::nullopt});
  }

  void add_moments(Moment moment, Cause cause, const std::string& what) {
    add_series(cause, what, a_.work.moment(moment), b_.work.moment(moment), 1.0);
  }
  void add_after_mark() {
    add_series(Cause::launch, "work of the device after the step's end", a_.work.after_mark, b_.work.after_mark, -1.0);
  }

  void add_series(Cause cause, const std::string& what, const std::vector<double>& a, const std::vector<double>& b,
                  double factor) {
    TermSeries& to = term(cause);
    add_times(to.a, a, factor), add_times(to.b, b, factor);
    const double a_seconds = factor * mean_of(a), b_seconds = factor * mean_of(b);
    to.a_seconds += a_seconds, to.b_seconds += b_seconds;
    if (a_seconds != 0 || b_seconds != 0)
      to.details.push_back({what, b_seconds - a_seconds, a_seconds, b_seconds, std::nullopt, std::nullopt});
  }

  static const WorkRow* row(const Side& side, size_t index) {
    return index == k_no_row ? nullptr : &side.work.rows[index];
  }

  const Side &a_, &b_;
  std::vector<TermSeries> terms_;
  ShareFactors clocks_ = {};  // of products and attention
};

}  // namespace

std::optional<MeanEstimate> estimate_steps(const std::vector<double>& values) {
  if (values.size() >= k_series) return estimate_mean(values);
  if (values.size() < 2) return std::nullopt;
  const double count = static_cast<double>(values.size()), spread = stddev(values);
  return MeanEstimate{mean(values), spread * spread / count, count - 1.0};
}

double TermSeries::value() const { return mean_of(b) - mean_of(a); }

std::vector<TermSeries> add_up_terms(const Side& a, const Side& b, const WorkMatch& match) {
  return TermAdder(a, b).add(match);
}

std::optional<Interval> interval_of(const TermSeries& series) {
  const auto a = estimate_steps(series.a), b = estimate_steps(series.b);
  if (!a || !b) return std::nullopt;
  const double variance = a->variance + b->variance;
  if (variance <= 0) return Interval{series.value(), series.value()};
  return student_interval({series.value(), variance,
                           joint_degrees(a->variance, a->degrees_of_freedom, b->variance, b->degrees_of_freedom)});
}

void add_empty_terms(Ledger& ledger) {
  for (size_t i = 0; i < k_causes; ++i) ledger.terms.emplace_back().cause = static_cast<Cause>(i);
}

void add_part(LedgerTerm& term, const std::string& what, double a_seconds, double b_seconds) {
  term.seconds += b_seconds - a_seconds, term.a_seconds += a_seconds, term.b_seconds += b_seconds;
  if (a_seconds != 0 || b_seconds != 0)
    term.details.push_back({what, b_seconds - a_seconds, a_seconds, b_seconds, std::nullopt, std::nullopt});
}

void close_ledger(Ledger& ledger) {
  double explained = 0;
  for (const LedgerTerm& term : ledger.terms) explained += term.seconds;
  double rest = ledger.gap_seconds - explained;
  if (std::abs(rest) < 1e-9) rest = 0.0;
  ledger.terms.back().seconds = rest;
  ledger.terms.back().low = ledger.terms.back().high = std::nullopt;
  ledger.resolved = std::abs(rest) <= k_unresolved * std::abs(ledger.gap_seconds);
}

std::vector<LedgerDetail> largest_details(std::vector<LedgerDetail> details) {
  std::map<std::string, LedgerDetail> joined;
  for (LedgerDetail& each : details) {
    const auto [place, is_new] = joined.try_emplace(each.what, each);
    if (is_new) continue;
    LedgerDetail& sum = place->second;
    sum.seconds += each.seconds;
    add_optional(sum.a_seconds, each.a_seconds), add_optional(sum.b_seconds, each.b_seconds);
    add_optional(sum.a_calls, each.a_calls), add_optional(sum.b_calls, each.b_calls);
  }
  std::vector<LedgerDetail> largest;
  for (auto& [what, detail] : joined)
    if (std::abs(detail.seconds) >= 1e-9) largest.push_back(std::move(detail));
  std::ranges::stable_sort(largest, std::greater<>(), [](const LedgerDetail& d) { return std::abs(d.seconds); });
  if (largest.size() > k_max_details) largest.resize(k_max_details);
  return largest;
}

}  // namespace tprimat::results

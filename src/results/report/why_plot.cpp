#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/why_report.h"
#include "report/why_tables.h"
#include "text/format.h"
#include "why/sentences.h"

namespace tprimat::results {
namespace {

constexpr Look k_side{0}, k_slower{1}, k_faster{2}, k_rest{0, true};
constexpr size_t k_max_terms = 8;
constexpr double k_nothing = 1e-9;  // of the step

struct Fall {
  int decimals = 3;
  double at = 0, level = 0;  // ms
  Panel panel = {};

  void add(const std::string& name, double change, Look look) {
    add_bar(name, level + change, look, level);
    panel.bars.back().label = fmt::format("{:+.{}f}", change, decimals);
    level += change;
  }
  void add_bar(const std::string& name, double value, Look look, double from = 0) {
    if (at > 0)  // from the bar before to this one
      panel.references.push_back({.x = at - 1, .y = level, .to_x = at, .to_y = level, .look = k_rest});
    panel.bars.push_back(
        {.at = at, .value = value, .look = look, .label = fmt::format("{:.{}f}", value, decimals), .from = from});
    panel.bar_names.push_back({at, name});
    at += 1;
  }
};

Look look_of(const LedgerTerm& term) { return term.seconds > 0 ? k_slower : k_faster; }

// The terms that get a bar: the longest, in the ledger's order.
std::vector<const LedgerTerm*> choose_terms(const Ledger& ledger) {
  std::vector<const LedgerTerm*> terms;
  for (const LedgerTerm& term : ledger.terms)
    if (term.cause != Cause::unexplained && is_large_term(ledger, term)) terms.push_back(&term);
  std::ranges::stable_sort(terms, std::greater<>(), [](const LedgerTerm* term) { return std::fabs(term->seconds); });
  if (terms.size() > k_max_terms) terms.resize(k_max_terms);
  std::ranges::sort(terms);  // places in the ledger
  return terms;
}

// The axis begins below the lowest bar, so that terms of a few percent are seen.
double axis_begin(const Panel& panel) {
  double low = INFINITY, high = -INFINITY;
  for (const Bar& bar : panel.bars) low = std::min(low, bar.value), high = std::max(high, bar.value);
  const double below = low - 0.5 * (high - low);
  return below > 0.1 * high ? below : 0;
}

Panel draw_waterfall(const Ledger& ledger) {
  Fall fall{.decimals = decimals_of(ledger)};
  fall.add_bar("A", ledger.a.step_seconds * 1e3, k_side);
  fall.level = ledger.a.step_seconds * 1e3;
  const double remainder = remainder_of(ledger);
  double rest = (ledger.b.step_seconds - ledger.a.step_seconds - remainder) * 1e3;
  for (const LedgerTerm* term : choose_terms(ledger)) {
    fall.add(std::string(cause_title(term->cause)), term->seconds * 1e3, look_of(*term));
    rest -= term->seconds * 1e3;
  }
  if (std::fabs(rest) > k_nothing * ledger.b.step_seconds * 1e3) fall.add("other terms", rest, k_rest);
  if (std::fabs(remainder) > k_nothing * ledger.b.step_seconds)
    fall.add(std::string(cause_title(Cause::unexplained)), remainder * 1e3, k_rest);
  fall.add_bar("B", ledger.b.step_seconds * 1e3, k_side);
  fall.panel.y = {.title = "time per step", .unit = "ms"};
  if (const double begin = axis_begin(fall.panel); begin > 0) fall.panel.y.low = begin;
  return fall.panel;
}

}  // namespace

Picture plot_why(const Ledger& ledger) {
  Panel panel = draw_waterfall(ledger);
  std::string footnote = "Orange terms make B slower, green terms make it faster.";
  if (panel.y.low) footnote += fmt::format(" The axis begins at {:.3g} ms.", *panel.y.low);
  Section section{
      .title = describe_gap(ledger),
      .subtitle = fmt::format("A: {}; B: {}. {}", ledger.a.label, ledger.b.label, describe_remainder(ledger)),
      .is_doubtful = !ledger.resolved,
      .columns = 1,
      .panel_height = 420,
      .panels = {std::move(panel)}};
  return {.sections = {std::move(section)}, .footnote = std::move(footnote)};
}

}  // namespace tprimat::results

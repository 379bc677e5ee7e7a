#include "report/why_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/document.h"
#include "report/why_report.h"
#include "text/format.h"
#include "why/sentences.h"

namespace tprimat::results {
namespace {

constexpr double k_worth_a_line = 0.005;  // of the gap, or of the largest term
constexpr size_t k_sentences = 3;

double largest_change(const Ledger& ledger) {
  double largest = std::fabs(ledger.gap_seconds);
  for (const LedgerTerm& term : ledger.terms) largest = std::max(largest, std::fabs(term.seconds));
  return largest;
}

// Milliseconds, all of a ledger with the same number of decimals.
class Figures {
 public:
  explicit Figures(const Ledger& ledger) : decimals_(decimals_of(ledger)) {}
  std::string length(double seconds) const { return format_fixed(seconds * 1e3, decimals_); }
  std::string length(const std::optional<double>& seconds) const { return seconds ? length(*seconds) : "-"; }
  std::string change(double seconds) const {
    const std::string text = length(seconds);
    const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
    return is_zero ? length(0.0) : (seconds > 0 ? "+" : "") + text;
  }
  std::string interval(const std::optional<double>& low, const std::optional<double>& high) const {
    return low && high ? change(*low) + " to " + change(*high) : "-";
  }

 private:
  int decimals_ = 3;
};

std::string share_text(const Ledger& ledger, double seconds) {
  const auto share = share_of_gap(ledger, seconds);
  constexpr double k_no_share = 0.0005;  // would be "-0.0 %"
  if (!share) return "-";
  return format_percent(std::fabs(*share) < k_no_share ? 0 : *share);
}

// Per step: a whole number, or with one decimal.
std::string calls_text(const std::optional<double>& calls) {
  if (!calls) return "-";
  return format_fixed(*calls, std::fabs(*calls - std::round(*calls)) < 0.05 ? 0 : 1);
}

// "48", or "48/96" where the sides differ.
std::string calls_text(const LedgerDetail& detail) {
  const std::string a = calls_text(detail.a_calls), b = calls_text(detail.b_calls);
  return a == b ? a : a + "/" + b;
}

std::string interval_of_length(const LedgerSide& side, const Figures& figures) {
  return side.low && side.high ? figures.length(*side.low) + " to " + figures.length(*side.high) : "-";
}

TextTable tabulate_sides(const Ledger& ledger, const Figures& figures) {
  TextTable table{{"side", "run", "ms per step", "95 % interval", "steps", "ranks", "device"}, {}, {2, 3, 4, 5}};
  const auto add = [&](const char* letter, const LedgerSide& side) {
    table.rows.push_back({letter, side.label, figures.length(side.step_seconds), interval_of_length(side, figures),
                          std::to_string(side.steps), std::to_string(side.ranks), side.device.value_or("-")});
  };
  add("A", ledger.a);
  add("B", ledger.b);
  return table;
}

WhyRow make_row(const Ledger& ledger, const LedgerTerm& term, const Figures& figures) {
  return {{std::string(cause_title(term.cause)), figures.length(term.a_seconds), figures.length(term.b_seconds),
           figures.change(term.seconds), figures.interval(term.low, term.high), share_text(ledger, term.seconds)},
          term.seconds,
          &term};
}

// Longest first, the remainder last.
std::vector<const LedgerTerm*> sort_terms(const Ledger& ledger) {
  std::vector<const LedgerTerm*> terms;
  for (const LedgerTerm& term : ledger.terms) terms.push_back(&term);
  std::ranges::stable_sort(terms, [](const LedgerTerm* a, const LedgerTerm* b) {
    if ((a->cause == Cause::unexplained) != (b->cause == Cause::unexplained)) return b->cause == Cause::unexplained;
    return std::fabs(a->seconds) > std::fabs(b->seconds);
  });
  return terms;
}

// Terms that are too small for a line of their own are one.
class Folded {
 public:
  void add(const LedgerTerm& term) {
    sum_.seconds += term.seconds, sum_.a_seconds += term.a_seconds, sum_.b_seconds += term.b_seconds;
    titles_.emplace_back(cause_title(term.cause));
  }
  void append_to(WhyTables& tables, const Ledger& ledger, const Figures& figures) const {
    if (titles_.empty()) return;
    WhyRow row = make_row(ledger, sum_, figures);
    row.cells[0] = titles_.size() == 1 ? titles_[0] : fmt::format("{} other terms", titles_.size());
    row.term = nullptr;
    tables.rows.push_back(std::move(row));
    if (titles_.size() > 1) tables.folded = titles_;
  }

 private:
  LedgerTerm sum_;
  std::vector<std::string> titles_;
};

void add_terms(WhyTables& tables, const Ledger& ledger, bool all, const Figures& figures) {
  tables.header = {"term", "A ms", "B ms", "B-A ms", "95 % interval", "of the gap"};
  Folded folded;
  std::optional<WhyRow> last;
  for (const LedgerTerm* term : sort_terms(ledger)) {
    if (term->cause == Cause::unexplained)
      last = make_row(ledger, *term, figures);
    else if (all || is_large_term(ledger, *term))
      tables.rows.push_back(make_row(ledger, *term, figures));
    else
      folded.add(*term);
  }
  folded.append_to(tables, ledger, figures);
  if (last) tables.rows.push_back(std::move(*last));
  tables.total = {"step",
                  figures.length(ledger.a.step_seconds),
                  figures.length(ledger.b.step_seconds),
                  figures.change(ledger.gap_seconds),
                  figures.interval(ledger.low, ledger.high),
                  share_text(ledger, ledger.gap_seconds)};
}

std::vector<Line> list_causes(const Ledger& ledger) {
  std::vector<Line> lines;
  for (const LedgerTerm* term : largest_terms(ledger, k_sentences))
    lines.push_back({fmt::format("{}. {}", lines.size() + 1, term->sentence),
                     term->seconds > 0 ? Tone::bad : Tone::good, term->remedy});
  return lines;
}

TextTable tabulate_classes(const Ledger& ledger, const Figures& figures) {
  TextTable table{{"class", "A ms", "B ms", "B-A ms", "A calls", "B calls"}, {}, {1, 2, 3, 4, 5}};
  for (const LedgerClass& each : ledger.classes)
    table.rows.push_back({std::string(enum_name(each.kernel_class)), figures.length(each.a_seconds),
                          figures.length(each.b_seconds), figures.change(each.b_seconds - each.a_seconds),
                          calls_text(each.a_calls), calls_text(each.b_calls)});
  return table;
}

}  // namespace

int decimals_of(const Ledger& ledger) {
  const double longest = std::max(ledger.a.step_seconds, ledger.b.step_seconds) * 1e3;
  return longest >= 10000 ? 0 : longest >= 1000 ? 1 : longest >= 100 ? 2 : 3;
}

std::optional<double> share_of_gap(const Ledger& ledger, double seconds) {
  if (ledger.gap_seconds == 0) return std::nullopt;
  return seconds / ledger.gap_seconds;
}

bool is_large_term(const Ledger& ledger, const LedgerTerm& term) {
  return std::fabs(term.seconds) > 0 && std::fabs(term.seconds) >= k_worth_a_line * largest_change(ledger);
}

std::vector<const LedgerTerm*> largest_terms(const Ledger& ledger, size_t count) {
  std::vector<const LedgerTerm*> terms;
  for (const LedgerTerm* term : sort_terms(ledger))
    if (terms.size() < count && term->cause != Cause::unexplained && !term->sentence.empty() &&
        is_large_term(ledger, *term))
      terms.push_back(term);
  return terms;
}

std::string describe_gap(const Ledger& ledger) {
  const double gap = ledger.gap_seconds, reference = ledger.a.step_seconds;
  if (gap == 0) return fmt::format("{} and {} take the same time per step.", ledger.b.label, ledger.a.label);
  const std::string share = reference > 0 ? fmt::format(" ({})", format_percent(std::fabs(gap) / reference)) : "";
  return fmt::format("B takes {} ms{} {} per step than A.", Figures(ledger).length(std::fabs(gap)), share,
                     gap > 0 ? "more" : "less");
}

double remainder_of(const Ledger& ledger) {
  double rest = 0;
  for (const LedgerTerm& term : ledger.terms)
    if (term.cause == Cause::unexplained) rest += term.seconds;
  return rest;
}

std::string describe_remainder(const Ledger& ledger) {
  const double rest = remainder_of(ledger);
  const auto share = share_of_gap(ledger, rest);
  const std::string size = Figures(ledger).change(rest) + " ms";
  const std::string of_gap = share ? fmt::format(" ({} of the gap)", format_percent(std::fabs(*share))) : "";
  return ledger.resolved ? fmt::format("Resolved: {}{} is unexplained.", size, of_gap)
                         : fmt::format("Not resolved: {}{} is unexplained, more than 5 %.", size, of_gap);
}

TextTable tabulate_parts(const Ledger& ledger, const LedgerTerm& term, size_t name_width) {
  const Figures figures(ledger);
  TextTable table{{"part", "calls", "A ms", "B ms", "B-A ms"}, {}, {1, 2, 3, 4}};
  for (const LedgerDetail& each : term.details)
    table.rows.push_back({shorten(each.what, name_width), calls_text(each), figures.length(each.a_seconds),
                          figures.length(each.b_seconds), figures.change(each.seconds)});
  return table;
}

std::vector<Line> list_sides(const Ledger& ledger) {
  const Figures figures(ledger);
  std::vector<Line> lines;
  for (const auto& [letter, side] : {std::pair('A', &ledger.a), std::pair('B', &ledger.b)}) {
    std::vector<std::string> facts;
    if (side->device) facts.push_back(*side->device);
    if (side->ranks > 1) facts.push_back(fmt::format("{} ranks", side->ranks));
    if (side->steps > 0) facts.push_back(fmt::format("{} recorded step{}", side->steps, side->steps == 1 ? "" : "s"));
    const std::string interval =
        side->low && side->high
            ? fmt::format(" (95 % interval {} to {})", figures.length(*side->low), figures.length(*side->high))
            : "";
    lines.push_back(
        {fmt::format("{}  {}: {} ms per step{}{}{}", letter, side->label, figures.length(side->step_seconds), interval,
                     facts.empty() ? "" : "; ", join(facts, ", ")),
         Tone::plain, ""});
  }
  return lines;
}

WhyTables tabulate_why(const Ledger& ledger, bool all) {
  const Figures figures(ledger);
  WhyTables tables;
  tables.sides = tabulate_sides(ledger, figures);
  add_terms(tables, ledger, all, figures);
  tables.classes = tabulate_classes(ledger, figures);
  tables.causes = list_causes(ledger);
  const bool names_none = tables.causes.empty();
  if (names_none) tables.causes.push_back({"No cause is named.", Tone::plain, ""});
  tables.remainder = {describe_remainder(ledger), ledger.resolved ? Tone::good : Tone::doubtful, ""};
  for (const std::string& note : ledger.notes) {
    if (names_none && note.starts_with(k_no_cause))
      tables.causes.back().text = capitalized(note) + ".";
    else
      tables.notes.push_back({"note: " + note, Tone::plain, ""});
  }
  return tables;
}

}  // namespace tprimat::results

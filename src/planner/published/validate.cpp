#include "published/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "published/readings.h"
#include "text/format.h"

namespace tprimat::planner {
namespace {

// One decimal more than the table prints; both ends where the row leaves much open.
std::string format_ours(const FigureCheck& figure) {
  if (!figure.computed || !figure.low || !figure.high) return "";
  const size_t point = figure.printed.find('.');
  const size_t printed = point == std::string::npos ? 0 : figure.printed.size() - point - 1;
  const size_t decimals = std::min<size_t>(printed + 1, 6);
  constexpr double k_wide = 1.04;
  if (*figure.high > k_wide * *figure.low) return fmt::format("{:.1f} to {:.1f}", *figure.low, *figure.high);
  return fmt::format("{:.{}f}", *figure.computed, decimals);
}

std::string describe_way(const FigureCheck& figure) {
  if (figure.lacks) return printable(*figure.lacks);
  std::string text = fmt::format("{} from {}", figure.convention.value_or(""), figure.from.value_or(""));
  if (figure.peak) text += fmt::format(", {}", *figure.peak);
  for (const std::string& deviation : figure.deviations) text += fmt::format("; {}", deviation);
  return text;
}

std::string figure_name(const std::string& column) {
  if (column == "tflops_per_gpu") return "TFLOP/s";
  return column == "mfu_pct" ? "MFU %" : "HFU %";
}

std::string render_rows(const TableCheck& check) {
  TextTable table{{"line", "model", "figure", "printed", "ours", "verdict", "how"}, {}, {0, 3, 4}};
  for (const RowCheck& row : check.rows)
    for (const FigureCheck& figure : row.figures)
      table.rows.push_back({std::to_string(row.line), printable(row.model.substr(0, 40)), figure_name(figure.figure),
                            printable(figure.printed.substr(0, 20)), format_ours(figure),
                            std::string(enum_name(figure.verdict)), describe_way(figure)});
  return table.rows.empty() ? "no row prints TFLOP/s, MFU or HFU\n" : render_text(table);
}

std::string render_deviations(const std::vector<TableCheck>& tables) {
  std::set<std::string_view> granted;
  for (const TableCheck& check : tables)
    for (const RowCheck& row : check.rows)
      for (const FigureCheck& figure : row.figures)
        if (figure.verdict == Standing::explained) granted.insert(figure.deviations.begin(), figure.deviations.end());
  if (granted.empty()) return "";
  TextTable table{{"deviation", "meaning"}, {}, {}};
  for (const DeviationRule& rule : deviation_rules())
    if (granted.count(rule.name) > 0) table.rows.push_back({std::string(rule.name), std::string(rule.meaning)});
  return render_text(table) + "\n";
}

std::string render_counts(const std::vector<TableCheck>& tables) {
  TextTable table{
      {"table", "reproduced", "explained", "unexplained", "lacking", "rows without figures"}, {}, {1, 2, 3, 4, 5}};
  for (const TableCheck& check : tables)
    table.rows.push_back({printable(check.table), std::to_string(check.reproduced), std::to_string(check.explained),
                          std::to_string(check.unexplained), std::to_string(check.lacking),
                          std::to_string(check.rows_without_figures)});
  return render_text(table);
}

enum class FigureKind { tflops, mfu, hfu };

// One way to a figure, with all that was granted on it.
struct Way {
  Bounds computed;
  std::string convention, from, peak;
  std::vector<std::string> deviations;
};

// Model FLOPs of a sequence as a source prints them: 3.94E+15.
double round_to_three_digits(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

std::vector<std::string> joined(std::vector<std::string> all, const std::string& more) {
  if (!more.empty()) all.push_back(more);
  return all;
}

bool contradict(const std::vector<RateChoice>& rates, const RateChoice& choice) {
  return choice.deviation.empty() && std::ranges::any_of(rates, [&](const RateChoice& other) {
           return other.deviation.empty() &&
                  (other.sequence_length == 0 || choice.sequence_length == 0 ||
                   other.sequence_length == choice.sequence_length) &&
                  !other.tokens_per_second_per_gpu.meets(choice.tokens_per_second_per_gpu);
         });
}

// Fewer deviations first; of as many, those that stand earlier in the list.
struct Effort {
  size_t deviations = 0, last_rule = 0;
  auto operator<=>(const Effort&) const = default;
};
Effort effort_of(const Way& way) {
  size_t last = 0;
  for (const std::string& deviation : way.deviations)
    for (size_t i = 0; i < deviation_rules().size(); ++i)
      if (deviation_rules()[i].name == deviation) last = std::max(last, i);
  return {way.deviations.size(), last};
}

// Looks for the way with the fewest deviations that meets a printed figure, and remembers the nearest plain one.
class Search {
 public:
  explicit Search(const Printed& printed) : printed_(printed) {}

  void offer(const Way& way) {
    offered_ = true;
    if (way.computed.meets(printed_.rounded())) return keep(way);
    if (!printed_.approximate && way.computed.meets(printed_.cut())) {
      Way cut = way;
      cut.deviations.emplace_back("figure_cut");
      keep(cut);
    }
    note_nearest(way);
  }

  bool has_more_decimals_than(double unit) const { return printed_.unit < unit * 0.99; }
  bool offered() const { return offered_; }
  const std::optional<Way>& best() const { return best_; }
  const std::optional<Way>& nearest() const { return nearest_; }

 private:
  void keep(const Way& way) {
    if (way.deviations.size() > k_max_deviations) return;
    if (!best_ || effort_of(way) < effort_of(*best_)) best_ = way;
  }
  void note_nearest(const Way& way) {
    const double distance = std::fabs(std::log(way.computed.middle() / printed_.value));
    const bool fewer = nearest_ && way.deviations.size() < nearest_->deviations.size();
    const bool nearer = nearest_ && way.deviations.size() == nearest_->deviations.size() && distance < distance_;
    if (nearest_ && !fewer && !nearer) return;
    nearest_ = way;
    distance_ = distance;
  }

  Printed printed_;
  std::optional<Way> best_, nearest_;
  double distance_ = 0;
  bool offered_ = false;
};

// A mean of steps' TFLOP/s, each rounded to 0.1, lies above what the mean time gives: by the square of the steps'
// relative spread. Where the FLOPs are not known to more than three digits, it says nothing.
void offer_average(Search& search, const Way& way) {
  constexpr double k_spread = 0.03, k_rounding = 0.05;
  if (!search.has_more_decimals_than(0.1) || std::ranges::count(way.deviations, "rounded_flops") > 0) return;
  Way average = way;
  average.computed = {std::max(way.computed.low - k_rounding, way.computed.low / 2),
                      way.computed.high * (1 + k_spread * k_spread) + k_rounding};
  average.deviations.emplace_back("averaged_steps");
  search.offer(average);
}

// What one token costs, times what one device does per second, in the figure's unit.
void offer_rate(Search& search, FigureKind kind, const RowInputs& inputs, const Way& way, const Bounds& rate) {
  const Bounds flops{way.computed.low * rate.low, way.computed.high * rate.high};
  if (kind == FigureKind::tflops) {
    Way teraflops = way;
    teraflops.computed = flops * 1e-12;
    if (inputs.logs_one_decimal) offer_average(search, teraflops);
    return search.offer(teraflops);
  }
  for (const PeakChoice& peak : inputs.peaks) {
    Way share = way;
    share.computed = flops * (100 / peak.flops_per_second);
    share.peak = peak.id;
    share.deviations = joined(way.deviations, peak.deviation);
    search.offer(share);
  }
}

void offer_reading(Search& search, FigureKind kind, const RowInputs& inputs, const FlopReading& reading,
                   int64_t length) {
  for (const RateChoice& rate : inputs.rates) {
    if (rate.sequence_length != 0 && rate.sequence_length != length) continue;
    Way way{reading.flops_per_token, reading.convention, rate.from, "", joined(reading.deviations, rate.deviation)};
    if (contradict(inputs.rates, rate)) way.deviations.emplace_back("rates_disagree");
    if (way.deviations.size() > k_max_deviations) continue;
    offer_rate(search, kind, inputs, way, rate.tokens_per_second_per_gpu);
    if (reading.flops_per_token.low != reading.flops_per_token.high) continue;
    const double rounded =
        round_to_three_digits(way.computed.low * static_cast<double>(length)) / static_cast<double>(length);
    way.computed = {rounded, rounded};
    way.deviations.emplace_back("rounded_flops");
    offer_rate(search, kind, inputs, way, rate.tokens_per_second_per_gpu);
  }
}

// MFU and HFU from the TFLOP/s that stand beside them: coarser than a rate, so only where no rate gives them.
void offer_teraflops(Search& search, const RowInputs& inputs, const PublishedRow& row) {
  const auto teraflops = parse_printed(row.cell("tflops_per_gpu"));
  if (!teraflops) return;
  for (const PeakChoice& peak : inputs.peaks)
    search.offer({teraflops->rounded() * (1e14 / peak.flops_per_second), "as printed", "TFLOP/s per GPU", peak.id,
                  joined({}, peak.deviation)});
}

// TFLOP/s may be meant either way, with what is recomputed or without.
void offer_counted(Search& search, FigureKind kind, const RowInputs& inputs) {
  if (inputs.rates.empty()) return;
  for (const SequenceChoice& sequence : inputs.sequences) {
    if (kind != FigureKind::hfu)
      for (const FlopReading& each : model_readings(inputs, sequence))
        offer_reading(search, kind, inputs, each, sequence.length);
    if (kind != FigureKind::mfu)
      for (const FlopReading& each : hardware_readings(inputs, sequence))
        offer_reading(search, kind, inputs, each, sequence.length);
  }
}

bool lacks_length(const RowInputs& inputs) {
  return std::ranges::none_of(inputs.sequences, &std::string::empty, &SequenceChoice::deviation);
}

std::string what_is_lacking(const RowInputs& inputs, FigureKind kind) {
  if (!inputs.missing.empty()) return inputs.missing;
  if (kind != FigureKind::tflops && inputs.peaks.empty()) return "no known peak for this GPU and precision";
  return "no sequence length";
}

FigureCheck judge_figure(const std::string& column, FigureKind kind, const PublishedRow& row, const RowInputs& inputs) {
  FigureCheck check;
  check.figure = column;
  check.printed = row.cell(column);
  const auto printed = parse_printed(check.printed);
  if (!printed) {
    check.lacks = "the printed figure is not a number";
    return check;
  }
  Search search(*printed);
  offer_counted(search, kind, inputs);
  if (kind != FigureKind::tflops && !search.best()) offer_teraflops(search, inputs, row);
  const bool found = search.best().has_value();
  if (!search.offered() || (!found && lacks_length(inputs))) {
    check.lacks = what_is_lacking(inputs, kind);
    return check;
  }
  const Way& way = found ? *search.best() : *search.nearest();
  check.computed = way.computed.middle();
  check.low = way.computed.low;
  check.high = way.computed.high;
  check.convention = way.convention;
  check.from = way.from;
  if (!way.peak.empty()) check.peak = way.peak;
  check.deviations = way.deviations;
  check.verdict = !found ? Standing::unexplained : way.deviations.empty() ? Standing::reproduced : Standing::explained;
  return check;
}

// In the order of Standing.
constexpr int64_t TableCheck::*k_counts[] = {&TableCheck::reproduced, &TableCheck::explained, &TableCheck::unexplained,
                                             &TableCheck::lacking};

}  // namespace

std::string render_validation(const std::vector<TableCheck>& tables) {
  std::string text;
  for (const TableCheck& check : tables) text += fmt::format("{}\n\n{}\n", printable(check.table), render_rows(check));
  return text + render_deviations(tables) + render_counts(tables);
}

RowCheck validate_row(const PublishedRow& row) {
  RowCheck check{row.line, row.cell("model"), {}};
  const RowInputs inputs = read_inputs(row);
  for (const auto& [column, kind] : {std::pair{"tflops_per_gpu", FigureKind::tflops},
                                     std::pair{"mfu_pct", FigureKind::mfu}, std::pair{"hfu_pct", FigureKind::hfu}})
    if (!row.cell(column).empty()) check.figures.push_back(judge_figure(column, kind, row, inputs));
  return check;
}

TableCheck validate_table(const PublishedTable& table) {
  TableCheck check;
  check.table = table.name;
  for (const PublishedRow& row : table.rows) {
    RowCheck judged = validate_row(row);
    for (const FigureCheck& figure : judged.figures) ++(check.*k_counts[static_cast<size_t>(figure.verdict)]);
    if (judged.figures.empty())
      ++check.rows_without_figures;
    else
      check.rows.push_back(std::move(judged));
  }
  return check;
}

}  // namespace tprimat::planner

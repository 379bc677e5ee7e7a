#include "published/validate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "published/readings.h"

namespace tprimat::planner {
namespace {

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
  for (const RateChoice& other : rates)
    if (other.deviation.empty() && choice.deviation.empty() &&
        (other.sequence_length == 0 || choice.sequence_length == 0 ||
         other.sequence_length == choice.sequence_length) &&
        !other.tokens_per_second_per_gpu.meets(choice.tokens_per_second_per_gpu))
      return true;
  return false;
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

// What one token costs, times what one device does per second, in the figure's unit.
void offer_rate(Search& search, FigureKind kind, const RowInputs& inputs, const Way& way, const Bounds& rate) {
  const Bounds flops{way.computed.low * rate.low, way.computed.high * rate.high};
  if (kind == FigureKind::tflops) {
    Way teraflops = way;
    teraflops.computed = flops * 1e-12;
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
  if (!inputs.shape || inputs.rates.empty()) return;
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
  for (const SequenceChoice& choice : inputs.sequences)
    if (choice.deviation.empty()) return false;
  return true;
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

void count_verdict(TableCheck& check, Standing verdict) {
  switch (verdict) {
    case Standing::reproduced: ++check.reproduced; break;
    case Standing::explained: ++check.explained; break;
    case Standing::unexplained: ++check.unexplained; break;
    case Standing::lacking: ++check.lacking; break;
  }
}

}  // namespace

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
    for (const FigureCheck& figure : judged.figures) count_verdict(check, figure.verdict);
    if (judged.figures.empty())
      ++check.rows_without_figures;
    else
      check.rows.push_back(std::move(judged));
  }
  return check;
}

}  // namespace tprimat::planner

#include "planner/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"
#include "spec/tsv_rows.h"
#include "text/enum_names.h"

namespace tprimat::planner {
namespace embedded {
extern const std::string_view intervals_tsv;
}

namespace {

constexpr int64_t k_min_near = 3;      // rows that make a GPU, a program or a kind of model measured
constexpr size_t k_min_kept_out = 10;  // rows that a band is drawn from
constexpr double k_outside = 0.1;      // share of the rows on each side of a band

constexpr std::string_view k_measured = "measured";
constexpr std::string_view k_heading =
    "# How far predictions are off, written by `tprimat plan --calibrate TABLE... --intervals FILE` "
    "(docs/planner.md).\n"
    "# Columns, separated by tabs:\n"
    "#   entry      'measured': rows that the parameters are fitted to; else a distance from them\n"
    "#   kind       of the model: dense, sparse, adapters\n"
    "#   gpu, architecture, family, precision  of measured rows\n"
    "#   rows       measured; of a distance, those that were kept out of a fit\n"
    "#   low, high  of a distance: 80 % of measured step times lie between these factors of the predicted one\n"
    "entry\tkind\tgpu\tarchitecture\tfamily\tprecision\trows\tlow\thigh\n";

template <class Matches>
int64_t count_rows(const std::vector<MeasuredGroup>& measured, const Matches& matches) {
  int64_t rows = 0;
  for (const MeasuredGroup& group : measured)
    if (matches(group)) rows += group.rows;
  return rows;
}

// Rows of each distance from a training.
struct Nearness {
  std::array<int64_t, k_distances> rows = {};
  Distance nearest = Distance::unmeasured;
};

Nearness find_nearness(const std::vector<MeasuredGroup>& measured, const Workload& workload, const Machine& machine) {
  const ModelKind kind = model_kind(workload);
  const auto of_architecture = [&](const MeasuredGroup& each) { return each.architecture == machine.architecture; };
  const auto of_kind = [&](const MeasuredGroup& each) { return of_architecture(each) && each.kind == kind; };
  const auto of_program = [&](const MeasuredGroup& each) {
    return of_kind(each) && each.gpu == machine.id && each.family == workload.family->id;
  };
  Nearness near;
  near.rows = {count_rows(measured, of_program), count_rows(measured, of_kind), count_rows(measured, of_architecture),
               0};
  for (size_t distance = 0; distance < k_distances; ++distance)
    if (near.rows[distance] >= k_min_near) {
      near.nearest = static_cast<Distance>(distance);
      break;
    }
  return near;
}

std::string name_basis(Distance distance, int64_t rows, const Workload& workload, const Machine& machine) {
  switch (distance) {
    case Distance::same_program:
      return fmt::format("{} rows of {} with {}", rows, machine.id, workload.family->full_name);
    case Distance::same_architecture:
      return fmt::format("{} {} rows of {}, other GPUs or programs", rows, enum_name(model_kind(workload)),
                         machine.architecture);
    case Distance::other_kind: return fmt::format("{} rows of {}, other kinds of models", rows, machine.architecture);
    case Distance::unmeasured: break;
  }
  return fmt::format("no rows of {}; errors on other architectures", machine.architecture);
}

// The 10th and 90th percentile of a next draw.
ErrorBand band_of(std::vector<double> ratios) {
  std::ranges::sort(ratios);
  const auto n = static_cast<double>(ratios.size());
  const auto at = [&](double rank) { return ratios[static_cast<size_t>(std::clamp(rank, 1.0, n)) - 1]; };
  return {at(std::floor((n + 1) * k_outside)), at(std::ceil((n + 1) * (1 - k_outside))),
          static_cast<int64_t>(ratios.size())};
}

void widen(ErrorBand& band, const ErrorBand& near) {
  band.low = std::min(band.low, near.low);
  band.high = std::max(band.high, near.high);
}

ModelKind read_kind(const std::string& name) {
  const auto kind = parse_enum<ModelKind>(name);
  CHECK(kind.has_value());
  return *kind;
}

void take_entry(IntervalTable& table, const TsvRow& row) {
  const ModelKind kind = read_kind(row.at("kind"));
  const auto rows = static_cast<int64_t>(parse_figure(row.at("rows")));
  if (row.at("entry") == k_measured) {
    table.measured.push_back(
        {row.at("gpu"), row.at("architecture"), row.at("family"), row.at("precision"), kind, rows});
    return;
  }
  const auto distance = parse_enum<Distance>(row.at("entry"));
  CHECK(distance.has_value());
  table.bands[static_cast<size_t>(kind)][static_cast<size_t>(*distance)] = {parse_figure(row.at("low")),
                                                                            parse_figure(row.at("high")), rows};
}

}  // namespace

ModelKind model_kind(const Workload& workload) {
  if (workload.trains_adapters) return ModelKind::adapters;
  return workload.shape.experts ? ModelKind::sparse : ModelKind::dense;
}

Distance IntervalTable::distance_of(const Workload& workload, const Machine& machine) const {
  return find_nearness(measured, workload, machine).nearest;
}

PredictionInterval IntervalTable::interval_of(const Workload& workload, const Machine& machine) const {
  const Nearness near = find_nearness(measured, workload, machine);
  const auto& of_kind = bands[static_cast<size_t>(model_kind(workload))];
  for (auto distance = static_cast<size_t>(near.nearest); distance < k_distances; ++distance) {
    const ErrorBand& band = of_kind[distance];
    if (band.rows == 0) continue;
    const int64_t rows = near.rows[static_cast<size_t>(near.nearest)];
    return {band.low, band.high, rows, name_basis(near.nearest, rows, workload, machine)};
  }
  return {};
}

IntervalTable make_intervals(std::vector<MeasuredGroup> measured, const std::vector<KeptOutRow>& rows) {
  IntervalTable table;
  table.measured = std::move(measured);
  for (size_t kind = 0; kind < k_model_kinds; ++kind) {
    ErrorBand nearer;
    for (size_t distance = 0; distance < k_distances; ++distance) {
      std::vector<double> ratios;
      for (const KeptOutRow& row : rows)
        if (static_cast<size_t>(row.kind) == kind && static_cast<size_t>(row.distance) == distance)
          ratios.push_back(row.ratio);
      if (ratios.size() < k_min_kept_out) continue;
      ErrorBand& band = table.bands[kind][distance] = band_of(std::move(ratios));
      if (nearer.rows > 0) widen(band, nearer);
      nearer = band;
    }
  }
  return table;
}

std::string format_intervals(const IntervalTable& table) {
  std::string text(k_heading);
  for (size_t kind = 0; kind < k_model_kinds; ++kind)
    for (size_t distance = 0; distance < k_distances; ++distance) {
      const ErrorBand& band = table.bands[kind][distance];
      if (band.rows > 0)
        text += fmt::format("{}\t{}\t\t\t\t\t{}\t{:.4g}\t{:.4g}\n", enum_name(static_cast<Distance>(distance)),
                            enum_name(static_cast<ModelKind>(kind)), band.rows, band.low, band.high);
    }
  for (const MeasuredGroup& each : table.measured)
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t\t\n", k_measured, enum_name(each.kind), each.gpu,
                        each.architecture, each.family, each.precision, each.rows);
  return text;
}

IntervalTable parse_intervals(std::string_view text) {
  IntervalTable table;
  for (const TsvRow& row : parse_tsv_rows(text)) take_entry(table, row);
  return table;
}

const IntervalTable& built_in_intervals() {
  static const IntervalTable loaded = parse_intervals(embedded::intervals_tsv);
  return loaded;
}

PredictionInterval prediction_interval(const Workload& workload, const Machine& machine,
                                       const ParameterSet& parameters) {
  CHECK(workload.family != nullptr);
  if (workload.family->own_trainer) return {};
  if (rests_on_measurements(parameters, machine, *workload.family))
    return built_in_intervals().interval_of(workload, machine);
  IntervalTable unmeasured = built_in_intervals();
  unmeasured.measured.clear();
  return unmeasured.interval_of(workload, machine);
}

}  // namespace tprimat::planner

#include "planner/interval.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

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
    "#   group      of a distance: whose errors a training there shares (GPU and program, architecture, vendor); "
    "empty: "
    "all\n"
    "#   gpu, architecture, family, precision  of measured rows\n"
    "#   rows       measured; of a distance, those that were kept out of a fit\n"
    "#   low, high  of a distance: 80 % of measured step times lie between these factors of the predicted one\n"
    "entry\tkind\tgroup\tgpu\tarchitecture\tfamily\tprecision\trows\tlow\thigh\n";

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
      return fmt::format("{} rows of {} ({}) with other GPUs or programs", rows, machine.architecture,
                         enum_name(model_kind(workload)));
    case Distance::other_kind:
      return fmt::format("{} rows of {} with other kinds of models", rows, machine.architecture);
    case Distance::unmeasured: break;
  }
  return fmt::format("other architectures, for lack of rows of {}", machine.architecture);
}

// What a training at that distance has in common with measured ones.
std::string name_group(Distance distance, const Workload& workload, const Machine& machine) {
  if (distance == Distance::same_program) return machine.id + ' ' + workload.family->id;
  if (distance == Distance::same_architecture) return machine.architecture;
  return std::string(vendor_of(machine.architecture));
}

using Errors = std::vector<double>;  // logarithms of measured over predicted

double mean_size(const Errors& errors) {
  double sum = 0;
  for (const double each : errors) sum += std::fabs(each);
  return sum / static_cast<double>(errors.size());
}

struct Range {
  double low = 0, high = 0;
};

// The 10th and 90th percentile of a next draw.
Range range_of(Errors errors) {
  std::ranges::sort(errors);
  const auto n = static_cast<double>(errors.size());
  const auto at = [&](double rank) { return errors[static_cast<size_t>(std::clamp(rank, 1.0, n)) - 1]; };
  return {at(std::floor((n + 1) * k_outside)), at(std::ceil((n + 1) * (1 - k_outside)))};
}

// Errors of one kind and distance, by group.
class ErrorPool {
 public:
  void add(const std::string& group, double error) {
    groups_[group].push_back(error);
    all_.push_back(error);
  }
  size_t rows() const { return all_.size(); }

  std::map<std::string, ErrorBand> bands() const {
    Errors weighted;
    for (const auto& [group, errors] : groups_)
      for (const double each : errors) weighted.push_back(each / weight_of(errors));
    const Range range = range_of(std::move(weighted));
    std::map<std::string, ErrorBand> bands = {{"", band_of(range, mean_size(all_), all_.size())}};
    for (const auto& [group, errors] : groups_) bands[group] = band_of(range, weight_of(errors), errors.size());
    return bands;
  }

 private:
  double weight_of(const Errors& errors) const {
    constexpr double k_rows_of_all = 5, k_min_weight = 1e-4;
    const auto n = static_cast<double>(errors.size());
    return std::max(k_min_weight, (n * mean_size(errors) + k_rows_of_all * mean_size(all_)) / (n + k_rows_of_all));
  }
  static ErrorBand band_of(const Range& range, double weight, size_t rows) {
    return {std::min(1.0, std::exp(range.low * weight)), std::max(1.0, std::exp(range.high * weight)),
            static_cast<int64_t>(rows)};
  }

  std::map<std::string, Errors> groups_;
  Errors all_;
};

void widen(ErrorBand& band, const ErrorBand& near) {
  band.low = std::min(band.low, near.low);
  band.high = std::max(band.high, near.high);
}

// The band of a training at that distance.
const ErrorBand* find_band(const std::map<BandKey, ErrorBand>& bands, const BandKey& place) {
  auto found = bands.find(place);
  if (found == bands.end()) found = bands.find({place.kind, place.distance, ""});
  return found == bands.end() ? nullptr : &found->second;
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
  table.bands[{kind, *distance, row.at("group")}] = {parse_figure(row.at("low")), parse_figure(row.at("high")), rows};
}

}  // namespace

ModelKind model_kind(const Workload& workload) {
  if (workload.trains_adapters) return ModelKind::adapters;
  return workload.shape.experts ? ModelKind::sparse : ModelKind::dense;
}

std::string_view vendor_of(std::string_view architecture) {
  return architecture.starts_with("cdna") ? "AMD" : "NVIDIA";
}

BandKey IntervalTable::place_of(const Workload& workload, const Machine& machine) const {
  const Distance nearest = find_nearness(measured, workload, machine).nearest;
  return {model_kind(workload), nearest, name_group(nearest, workload, machine)};
}

PredictionInterval IntervalTable::interval_of(const Workload& workload, const Machine& machine) const {
  const Nearness near = find_nearness(measured, workload, machine);
  ErrorBand widest;
  for (size_t index = 0; index < k_distances; ++index) {
    const auto distance = static_cast<Distance>(index);
    const ErrorBand* band = find_band(bands, {model_kind(workload), distance, name_group(distance, workload, machine)});
    if (band == nullptr) continue;
    widen(widest, *band);
    if (distance < near.nearest) continue;
    const int64_t rows = near.rows[static_cast<size_t>(near.nearest)];
    const ErrorBand& felt = distance == Distance::same_program ? *band : widest;
    return {felt.low, felt.high, rows, name_basis(near.nearest, rows, workload, machine)};
  }
  return {};
}

IntervalTable make_intervals(std::vector<MeasuredGroup> measured, const std::vector<KeptOutRow>& rows) {
  IntervalTable table;
  table.measured = std::move(measured);
  std::map<std::pair<ModelKind, Distance>, ErrorPool> pools;
  for (const KeptOutRow& row : rows)
    pools[{row.place.kind, row.place.distance}].add(row.place.group, std::log(row.ratio));
  for (const auto& [place, pool] : pools)
    if (pool.rows() >= k_min_kept_out)
      for (const auto& [group, band] : pool.bands()) table.bands[{place.first, place.second, group}] = band;
  return table;
}

std::string format_intervals(const IntervalTable& table) {
  std::string text(k_heading);
  for (const auto& [place, band] : table.bands)
    text += fmt::format("{}\t{}\t{}\t\t\t\t\t{}\t{:.4g}\t{:.4g}\n", enum_name(place.distance), enum_name(place.kind),
                        place.group, band.rows, band.low, band.high);
  for (const MeasuredGroup& each : table.measured)
    text += fmt::format("{}\t{}\t\t{}\t{}\t{}\t{}\t{}\t\t\n", k_measured, enum_name(each.kind), each.gpu,
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

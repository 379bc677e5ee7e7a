#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/parameters.h"
#include "text/fields.h"

namespace tprimat::planner {

// What a training is, as far as the errors of its predictions differ.
enum class ModelKind { dense, sparse, adapters };
constexpr auto enum_table(ModelKind) {
  return std::to_array<std::pair<ModelKind, std::string_view>>(
      {{ModelKind::dense, "dense"}, {ModelKind::sparse, "sparse"}, {ModelKind::adapters, "adapters"}});
}
ModelKind model_kind(const Workload& workload);

// How far a training is from those that the parameters were fitted to, from near to far.
enum class Distance {
  same_program,       // this GPU, program and kind of model were measured
  same_architecture,  // this kind on the GPU's architecture, but on another GPU or by another program
  other_kind,         // the architecture, but another kind of model
  unmeasured          // nothing on this architecture
};
constexpr auto enum_table(Distance) {
  return std::to_array<std::pair<Distance, std::string_view>>({{Distance::same_program, "same_program"},
                                                               {Distance::same_architecture, "same_architecture"},
                                                               {Distance::other_kind, "other_kind"},
                                                               {Distance::unmeasured, "unmeasured"}});
}
inline constexpr size_t k_distances = 4;

// Rows that were measured of one GPU, program, kind of model and precision.
struct MeasuredGroup {
  std::string gpu, architecture, family, precision;
  ModelKind kind = ModelKind::dense;
  int64_t rows = 0;
  bool operator==(const MeasuredGroup&) const = default;
};

// Between these factors of the predicted step time lie 80 % of measured steps.
struct PredictionInterval {
  double low = 1, high = 1;
  int64_t rows = 0;  // measured ones that are as near, as `basis` names them
  std::string
      basis;  // "41 rows of MI355X with Megatron-Core, NeMo, Megatron-Bridge"; empty: not known, and low = high = 1

  bool is_known() const { return !basis.empty(); }

  static constexpr auto fields() {
    using P = PredictionInterval;
    return field_list(field("low", &P::low, "80 % of measured step times are above this multiple of the predicted one"),
                      field("high", &P::high, "and below this one"),
                      field("rows", &P::rows, "published measurements behind it"),
                      field("basis", &P::basis, "what they measured"));
  }
};

struct ErrorBand {
  double low = 1, high = 1;
  int64_t rows = 0;  // kept out of a fit
};

// Where a band holds: a kind of model, a distance, and the rows whose errors a training at that distance shares: of the
// GPU and program, of the architecture, else of the vendor. An empty group is that of all.
struct BandKey {
  ModelKind kind = ModelKind::dense;
  Distance distance = Distance::same_program;
  std::string group;
  auto operator<=>(const BandKey&) const = default;
};

// What was measured, and how far predictions of rows that were kept out of the fit are off (docs/planner.md).
struct IntervalTable {
  std::vector<MeasuredGroup> measured;
  std::map<BandKey, ErrorBand> bands;

  BandKey place_of(const Workload& workload, const Machine& machine) const;  // the nearest that was measured
  PredictionInterval interval_of(const Workload& workload, const Machine& machine) const;
};
const IntervalTable& built_in_intervals();

// The text of src/planner/planner/intervals.tsv, and back.
std::string format_intervals(const IntervalTable& table);
IntervalTable parse_intervals(std::string_view text);

// Measured step seconds over predicted ones of a row that was kept out of the fit.
struct KeptOutRow {
  BandKey place;  // by what was fitted
  double ratio = 1;
};

// Locally weighted split conformal prediction (Lei et al., JASA 113, 2018). Errors are logarithms of ratios. Those of a
// kind and distance are divided by their group's mean absolute error, in which five rows of the mean of all groups take
// part; a band reaches from their 10th to their 90th percentile, each moved outwards by the rank that a next row would
// have, times the group's mean. A distance with fewer than ten rows has none. A training's interval spans the bands of
// its distance and of all smaller ones, so that it is never narrower farther away.
IntervalTable make_intervals(std::vector<MeasuredGroup> measured, const std::vector<KeptOutRow>& rows);

std::string_view vendor_of(std::string_view architecture);  // "AMD"

// The built-in table's; the farthest band where nothing but priors stands behind `parameters`. Not known for our own
// trainer, whose steps no published row measured.
PredictionInterval prediction_interval(const Workload& workload, const Machine& machine,
                                       const ParameterSet& parameters);

}  // namespace tprimat::planner

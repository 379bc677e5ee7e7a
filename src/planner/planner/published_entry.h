#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/parameters.h"
#include "planner/plan_validation.h"
#include "published/table.h"
#include "text/fields.h"

namespace tprimat::planner {

// MFU by one count of FLOPs, over the peak of the hardware catalogue.
struct CountedMfu {
  std::string convention;  // of docs/metrics.md: causal, full, megatron, 6n, 6n+full
  double flops_per_token = 0;
  double mfu = 0;
  std::vector<std::string> deviations;  // what is assumed of the shape: "assumed_vocabulary"

  static constexpr auto fields() {
    using C = CountedMfu;
    return field_list(field("convention", &C::convention, "count of FLOPs"),
                      field("flops_per_token", &C::flops_per_token, "model FLOPs, forward and backward"),
                      field("mfu", &C::mfu, "share of the peak"),
                      field("deviations", &C::deviations, "what the count assumes beyond the row"));
  }
};

// What follows from a row's cells.
struct PublishedFigures {
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<std::string> rate_from;     // cell that gives the rate: "step time"
  std::optional<std::string> peak;          // "H100-SXM-80GB bf16 989"; absent where row or catalogue states none
  std::vector<CountedMfu> mfu;              // where shape, rate and peak are known
  std::optional<std::string> missing;       // why there is no MFU
  std::optional<double> minutes_to_target;  // of MLPerf

  static constexpr auto fields() {
    using F = PublishedFigures;
    return field_list(field("tokens_per_second_per_gpu", &F::tokens_per_second_per_gpu, "tokens/s per GPU"),
                      field("rate_from", &F::rate_from, "cell that gives the rate"),
                      field("peak", &F::peak, "peak behind the MFU, TFLOP/s"),
                      field("mfu", &F::mfu, "MFU by each count of FLOPs"),
                      field("missing", &F::missing, "reason for a missing MFU"),
                      field("minutes_to_target", &F::minutes_to_target, "minutes until the target was reached"));
  }
};
PublishedFigures derive_figures(const PublishedRow& row);

// A published result in a list.
struct PublishedEntry {
  std::string id, table, model, kind, gpu, framework, precision, layout, reading, reach, source, link, notes;
  std::optional<int64_t> gpus, sequence_length, global_batch;
  std::optional<double> tokens_per_second_per_gpu, tflops_per_gpu, mfu, minutes_to_target;

  static constexpr auto fields() {
    using E = PublishedEntry;
    return field_list(
        field("id", &E::id, "for tprimat published show"), field("table", &E::table, "file in data/published"),
        field("model", &E::model, "as printed"),
        field("kind", &E::kind, "dense, sparse or hybrid; empty: shape not known"), field("gpu", &E::gpu, "as printed"),
        field("gpus", &E::gpus, "number of GPUs"), field("framework", &E::framework, "as printed"),
        field("precision", &E::precision, "as printed"), field("sequence_length", &E::sequence_length, "tokens"),
        field("global_batch", &E::global_batch, "sequences per step"),
        field("layout", &E::layout, "parallel sizes, as printed"),
        field("tokens_per_second_per_gpu", &E::tokens_per_second_per_gpu, "printed or derived"),
        field("tflops_per_gpu", &E::tflops_per_gpu, "as printed, by the source's count"),
        field("mfu", &E::mfu, "our count: causal attention, peak of the catalogue"),
        field("minutes_to_target", &E::minutes_to_target, "of MLPerf"),
        field("reading", &E::reading, "how the figures were obtained"),
        field("reach", &E::reach, "who can open the source"), field("source", &E::source, "where the figures stand"),
        field("link", &E::link, "address of the source"), field("notes", &E::notes, "settings and doubts"));
  }
};
PublishedEntry read_published_entry(const PublishedRow& row, const std::string& table);

// One row with everything that we say of it.
struct PublishedDetails {
  std::string id, table, link;
  std::map<std::string, std::string> cells;
  PublishedFigures derived;
  PlannedRow planned;
  std::optional<double> predicted_low = {}, predicted_high = {};
  std::optional<std::string> interval_basis = {};

  static constexpr auto fields() {
    using D = PublishedDetails;
    return field_list(field("id", &D::id, "of the row"), field("table", &D::table, "file in data/published"),
                      field("link", &D::link, "address of the source"),
                      field("cells", &D::cells, "as the table states them, by column"),
                      field("derived", &D::derived, "what follows from the cells"),
                      field("planned", &D::planned, "what the planner predicts"),
                      field("predicted_low", &D::predicted_low, "tokens/s per GPU, lower bound of the 80 % interval"),
                      field("predicted_high", &D::predicted_high, "tokens/s per GPU, upper bound"),
                      field("interval_basis", &D::interval_basis, "measured rows behind the interval"));
  }
};

// Throws Error, with the nearest id, for an id that no row has.
PublishedDetails describe_published_row(const std::string& id, const ParameterSet& parameters);

}  // namespace tprimat::planner

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/calibrate.h"
#include "planner/machine.h"
#include "planner/plan_validation.h"
#include "planner/refine.h"
#include "result/run_result.h"
#include "text/fields.h"

namespace tprimat::planner {

// A result of `tprimat run` or of a log, and where it lies.
struct NamedResult {
  std::string path;
  RunResult result;
};

// What such a result says of a step; nothing but `missing` where it says too little to predict it.
struct OwnObservation {
  std::string path, layout;
  std::optional<Observation> observed;
  std::string missing;
};

// The processor as it was measured before a run: `peak` is each rank's share of what `threads` achieve. Nothing for a
// peak from elsewhere, or without the bandwidth.
std::optional<ProcessorFacts> facts_of_peak(const PeakInfo& peak, Precision precision, int64_t threads, int64_t ranks);

// Each result's processor is what was measured before its run, as `tprimat run` predicts with it; where the result
// does not hold that, what `tprimat probe` measured with as many threads (`probed`, by name).
// A GPU is the probed one of that part in `gpus`, where there is one, else the catalogue's.
std::vector<OwnObservation> observe_results(const std::vector<NamedResult>& results,
                                            const std::map<std::string, ProcessorFacts>& probed,
                                            const std::vector<Machine>& gpus = {});

// One result beside what the planner says of it, with parameters before and after a fit.
struct ResultResidual {
  std::string result, family, machine, precision, layout;
  std::optional<double> measured_seconds, before_seconds, before_error, predicted_seconds, error;
  std::optional<double> measured_memory, before_memory, before_memory_error, predicted_memory, memory_error;
  std::optional<std::string> missing;

  static constexpr auto fields() {
    using R = ResultResidual;
    return field_list(field("result", &R::result, "file"), field("family", &R::family, "framework family"),
                      field("machine", &R::machine, "machine of the run"),
                      field("precision", &R::precision, "of the matrix products"),
                      field("layout", &R::layout, "number of ranks and parallel layout"),
                      field("measured_seconds", &R::measured_seconds, "median of the steady steps"),
                      field("before_seconds", &R::before_seconds, "predicted before the fit"),
                      field("before_error", &R::before_error, "prediction over the measured time, minus 1"),
                      field("predicted_seconds", &R::predicted_seconds, "predicted by the parameters of this report"),
                      field("error", &R::error, "prediction over the measured time, minus 1"),
                      field("measured_memory", &R::measured_memory, "bytes on the device with the highest use"),
                      field("before_memory", &R::before_memory, "bytes predicted before the fit"),
                      field("before_memory_error", &R::before_memory_error, "that over the measured bytes, minus 1"),
                      field("predicted_memory", &R::predicted_memory, "bytes"),
                      field("memory_error", &R::memory_error, "prediction over the measured bytes, minus 1"),
                      field("missing", &R::missing, "reason for a missing prediction"));
  }
};

struct OwnResultsReport {
  std::string table = "results";
  std::vector<PlanErrors> errors;
  std::map<std::string, int64_t> not_predicted;  // reason -> results
  std::vector<ResultResidual> rows;
  std::optional<std::vector<MovedParameter>> moved;  // by a fit to results alone

  static constexpr auto fields() {
    using R = OwnResultsReport;
    return field_list(field("table", &R::table, "kind of rows"), field("errors", &R::errors, "quantiles"),
                      field("not_predicted", &R::not_predicted, "results without a prediction, by reason"),
                      field("rows", &R::rows, "each result"),
                      field("moved", &R::moved, "parameters that the fit moved, furthest first"));
  }
};

// `before`: where parameters were fitted.
OwnResultsReport report_own_results(const std::vector<OwnObservation>& observed, const ParameterSet& parameters,
                                    const ParameterSet* before = nullptr);
std::string render_own_results(const OwnResultsReport& report);

// What `tprimat plan --validate` and `--calibrate` print as JSON.
struct PlanValidation : ValidationReport {
  std::optional<OwnResultsReport> results;  // absent: none was named

  static constexpr auto fields() {
    using V = PlanValidation;
    return field_list(field("tables", &V::tables, "each table of published measurements"),
                      field("together", &V::together, "quantiles of the errors over the rows of all tables"),
                      field("ranking", &V::ranking, "ranking quality over the sweeps of all tables"),
                      field("results", &V::results, "errors on results of trainings; absent: no result was given"));
  }
};

}  // namespace tprimat::planner

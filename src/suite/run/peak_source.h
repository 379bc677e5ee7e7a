#pragma once

#include <optional>

#include "run/reporters.h"
#include "run/suite_context.h"

namespace tprimat::suite {

// Finds the denominator of MFU for a run: from the catalogue, else the configuration (which comes first if it says
// hardware.peak_source: mine), else for a processor a measurement, made once per precision and number of threads. An
// unknown device has no peak.
class PeakSource {
 public:
  PeakSource(const SuiteContext& around, Reporter& reporter)
      : around_(around), reporter_(reporter), measured_(around.measured_peaks) {}
  std::optional<MeasuredPeak> find(const PlannedRun& run);
  const MeasuredPeaks& measured() const { return measured_; }

 private:
  std::optional<PeakInfo> find_catalogued(const PlannedRun& run) const;
  // Ranks on one processor are its devices: each gets an equal share of the rate of all threads.
  std::optional<MeasuredPeak> find_of_ranks(Precision precision, int64_t threads, int64_t ranks);
  std::optional<MeasuredPeak> find_measured(Precision precision, int64_t threads);
  std::optional<MeasuredPeak> measure(Precision precision, int64_t threads);

  const SuiteContext& around_;
  Reporter& reporter_;
  MeasuredPeaks measured_;
};

}  // namespace tprimat::suite

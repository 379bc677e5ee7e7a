#pragma once

#include <optional>

#include "run/reporters.h"
#include "run/suite_context.h"

namespace tprimat::suite {

// Finds the denominator of MFU for a run: from the catalogue, else the configuration (which comes first if it says
// hardware.peak_source: mine), else for a processor a measurement, made once per precision and number of threads. An
// unknown device has no peak, and a configured one counts only on the device that it is for.
class PeakSource {
 public:
  PeakSource(const SuiteContext& around, Reporter& reporter)
      : around_(around), reporter_(reporter), measured_(around.measured_peaks) {}
  std::optional<MeasuredPeak> find(const PlannedRun& run);
  const MeasuredPeaks& measured() const { return measured_; }

 private:
  // The GPU of this machine that the run trains on; nothing on a processor, elsewhere, and where none is seen.
  std::optional<std::string> device_here(const PlannedRun& run) const;
  // Where the configuration states the peak of another device than the one here.
  std::optional<MeasuredPeak> find_of_other(const PlannedRun& run, const std::string& here);
  // Of the GPU that the run trains on: this machine's, else the configured one.
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

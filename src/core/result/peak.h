#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result/run_result.h"

namespace tprimat {

// The dense peak of one device at a precision, from the hardware catalogue. Nothing for a device or precision that the
// catalogue lacks; then there is no MFU.
std::optional<PeakInfo> catalogue_peak(std::string_view device_name, Precision precision);

// A device's peak that a person states, in the configuration. It counts where the catalogue has none, or first.
struct StatedPeak {
  std::string device;
  Precision precision = Precision::bf16;
  double flops_per_second = 0;
  bool counts_first = false;
};
PeakInfo stated_peak_info(const StatedPeak& peak);

// The reverse, of a result's peak; nothing for peaks of other sources.
std::optional<StatedPeak> find_stated_peak(const PeakInfo& peak);

// The peak of one device at a precision, of both sources.
std::optional<PeakInfo> choose_peak(const std::vector<StatedPeak>& stated, const std::string& device_name,
                                    Precision precision);

// By the peak's id: from a measurement on the machine, not from a datasheet or a configuration.
bool is_measured(const PeakInfo& peak);

// The current catalogue's figure for the part and precision in a peak's id; nothing for peaks from other sources and
// for parts that the catalogue no longer holds.
std::optional<double> catalogue_value(const PeakInfo& peak);

}  // namespace tprimat

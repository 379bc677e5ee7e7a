#pragma once

#include <optional>
#include <string_view>

#include "result/run_result.h"

namespace tprimat {

// The dense peak of one device at a precision, from the hardware catalogue. Nothing for a device or precision that the
// catalogue lacks; then there is no MFU.
std::optional<PeakInfo> catalogue_peak(std::string_view device_name, Precision precision);

// By the peak's id: from a measurement on the machine, not from a datasheet or a configuration.
bool is_measured(const PeakInfo& peak);

// The current catalogue's figure for the part and precision in a peak's id; nothing for peaks from other sources and
// for parts that the catalogue no longer holds.
std::optional<double> catalogue_value(const PeakInfo& peak);

}  // namespace tprimat

#pragma once

#include <optional>
#include <string_view>

#include "result/run_result.h"

namespace tprimat {

// The dense peak of one device at a precision, from the hardware catalogue. Nothing for a device or precision that the
// catalogue does not state: then there is no MFU.
std::optional<PeakInfo> catalogue_peak(std::string_view device_name, Precision precision);

}  // namespace tprimat

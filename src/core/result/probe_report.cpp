#include "result/probe_report.h"

#include <algorithm>

namespace tprimat {

std::optional<double> MemoryBandwidth::rate(StreamKernel kind) const {
  for (const MemoryRate& each : kinds)
    if (each.kind == kind) return each.bytes_per_second;
  return std::nullopt;
}

const GemmPeak* ProbeReport::find_peak(ProductFormat format) const {
  for (const GemmPeak& each : matmul)
    if (each.precision == format) return &each;
  return nullptr;
}

}  // namespace tprimat

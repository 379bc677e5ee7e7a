#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

// The fastest window of one shape: m tokens by k inputs times k inputs by n outputs.
struct GemmRate {
  int64_t m = 0, n = 0, k = 0;
  double flops_per_second = 0;  // 2·m·n·k per product
  double cpu_share = 0;         // of the threads' time in that window; below 1 where other processes took some

  static constexpr auto fields() {
    using G = GemmRate;
    return std::tuple{
        field("m", &G::m, "rows of the input and the output"),
        field("n", &G::n, "columns of the weights and the output"),
        field("k", &G::k, "columns of the input, rows of the weights"),
        field("flops_per_second", &G::flops_per_second, "2·m·n·k per product"),
        field("cpu_share", &G::cpu_share, "share of the threads' time that the system gave to this process")};
  }
};

// This CPU's achievable matrix-product rate, as a denominator for MFU where no catalogue states a peak.
struct GemmPeak {
  Precision precision = Precision::fp32;
  double flops_per_second = 0;
  double cpu_share = 0;  // in the fastest window of that shape
  std::string how;       // the rule by which it was measured
  std::vector<GemmRate> shapes;

  static constexpr auto fields() {
    using G = GemmPeak;
    return std::tuple{field("precision", &G::precision, "number format of the inputs and the output"),
                      field("flops_per_second", &G::flops_per_second, "of the fastest shape"),
                      field("cpu_share", &G::cpu_share,
                            "share of the threads' time that the system gave; below 0.95 other work disturbed"),
                      field("how", &G::how, "rule of the measurement"),
                      field("shapes", &G::shapes, "rate of each shape")};
  }
};

// Measures square and Transformer-like products for about two seconds: oneDNN with weights packed beforehand, normal
// random data, warm. The peak is the fastest window of at least 0.1 s. `threads` 0 means all that this process may use;
// the thread count of the whole process is set to it. Nothing for a precision that this CPU has no instructions for.
// Throws Error when memory runs out.
std::optional<GemmPeak> measure_gemm_peak(Precision precision, int threads);

}  // namespace tprimat

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/measuring.h"
#include "probe/product.h"
#include "spec/names.h"
#include "text/fields.h"

namespace tprimat {

// The fastest window of one product.
struct GemmRate {
  std::string name;
  ProductPass pass = ProductPass::forward;
  int64_t m = 0, n = 0, k = 0;
  double flops_per_second = 0;  // 2·m·n·k per product
  Measured measured;

  static constexpr auto fields() {
    using G = GemmRate;
    return std::tuple{
        field("name", &G::name, "which product"),
        field("pass", &G::pass, "forward, or the gradient of the input (dgrad) or of the weights (wgrad)"),
        field("m", &G::m, "rows of the left matrix and the result"),
        field("n", &G::n, "columns of the right matrix and the result"),
        field("k", &G::k, "columns of the left matrix, rows of the right one"),
        field("flops_per_second", &G::flops_per_second, "2·m·n·k per product, in the fastest window"),
        field("measured", &G::measured, "the measurement")};
  }
};

// This CPU's achievable matrix-product rate, as a denominator for MFU where no catalogue states a peak.
struct GemmPeak {
  ProductFormat precision = ProductFormat::fp32;
  double flops_per_second = 0;
  double cpu_share = 0;  // in the fastest window of that shape
  std::string how;       // the rule by which it was measured
  std::vector<GemmRate> shapes;

  static constexpr auto fields() {
    using G = GemmPeak;
    return std::tuple{field("precision", &G::precision, "number format of the inputs"),
                      field("flops_per_second", &G::flops_per_second, "of the fastest shape"),
                      field("cpu_share", &G::cpu_share,
                            "share of the threads' time that the system gave; below 0.95 other work disturbed"),
                      field("how", &G::how, "rule of the measurement"),
                      field("shapes", &G::shapes, "rate of each shape")};
  }
};

// Measures square and Transformer-like products for about two seconds: oneDNN with weights packed beforehand, normal
// random data, warm, by the rule in measuring.h. The peak is the fastest window. `threads` 0 means all that this
// process may use; the thread count of the whole process is set to it. Nothing for a format that this CPU has no
// instructions for. Throws Error when memory runs out.
// Throws Error soon after `is_stopped` says so.
std::optional<GemmPeak> measure_gemm_peak(ProductFormat format, int threads, const StopRequest& is_stopped = {});
// The same for a training's precision: 16-bit numbers without instructions are widened and multiplied in fp32, so the
// peak is that of fp32, and its `precision` says so.
std::optional<GemmPeak> measure_gemm_peak(Precision precision, int threads, const StopRequest& is_stopped = {});

// The same for given products, which must not be none.
std::optional<GemmPeak> measure_products(const std::vector<ProductShape>& shapes, ProductFormat format, int threads,
                                         const StopRequest& is_stopped = {});

}  // namespace tprimat

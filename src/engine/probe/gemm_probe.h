#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/measuring.h"
#include "probe/product.h"
#include "result/probe_report.h"
#include "spec/names.h"

namespace tprimat::engine {

// Measures square and Transformer-like products for about two seconds: oneDNN with weights packed beforehand, normal
// random data, warm, by the rule in measuring.h. The peak is the fastest window. `threads` 0 means all that this
// process may use; the thread count of the whole process is set to it. Nothing for a format that this CPU has no
// instructions for. Throws Error when memory runs out.
std::optional<GemmPeak> measure_gemm_peak(ProductFormat format, int threads);
// The same for a training's precision: 16-bit numbers without instructions are widened and multiplied in fp32, so the
// peak is that of fp32, and its `precision` says so.
std::optional<GemmPeak> measure_gemm_peak(Precision precision, int threads);

// The same for given products, which must not be none.
std::optional<GemmPeak> measure_products(const std::vector<ProductShape>& shapes, ProductFormat format, int threads);

}  // namespace tprimat::engine

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/grouped_rate.h"
#include "probe/measuring.h"
#include "probe/product.h"
#include "result/probe_report.h"
#include "spec/model_spec.h"
#include "spec/names.h"

namespace tprimat::engine {

// Measures square and Transformer-like products for about two seconds: oneDNN with weights packed beforehand, on
// normal random data, warm, by the rule in measuring.h; and the trainer's own products, where it has some. Of each
// shape the faster counts. The peak is the fastest window. `threads` 0 means all that this process may use; the thread
// count of the whole process is set to it. Nothing for a format that this CPU has no instructions for. Throws Error
// when memory runs out.
std::optional<GemmPeak> measure_gemm_peak(ProductFormat format, int threads);
// The same for a training's precision: 16-bit numbers without instructions are widened and multiplied in fp32, so the
// peak is that of fp32, and its `precision` says so.
std::optional<GemmPeak> measure_gemm_peak(Precision precision, int threads);

// The same for given products, which must not be none.
std::optional<GemmPeak> measure_products(const std::vector<ProductShape>& shapes, ProductFormat format, int threads);

// What a model's own products achieve.
struct ModelRate {
  std::string model;
  int64_t tokens = 0;
  GemmPeak products;
  std::optional<std::vector<GroupedRate<Measured>>> grouped;  // of routed experts
  double flops_per_second = 0;  // all products of a step one after the other: sum of FLOPs / sum of times

  static constexpr auto fields() {
    using M = ModelRate;
    return field_list(field("model", &M::model, "key of the model in the config"),
                      field("tokens", &M::tokens, "tokens of a micro-batch, MBS x SL"),
                      field("products", &M::products, "rate of each product"),
                      field("grouped", &M::grouped, "rate of the routed experts' products; absent: a dense model"),
                      field("flops_per_second", &M::flops_per_second, "aggregate rate of all products in a step"));
  }
};

// Nothing for a format that this CPU has no instructions for. `threads` as in measure_gemm_peak.
std::optional<ModelRate> measure_model_products(const ModelSpec& model, int64_t tokens, ProductFormat format,
                                                int threads);

}  // namespace tprimat::engine

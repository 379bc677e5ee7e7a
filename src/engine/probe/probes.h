#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/gemm_probe.h"
#include "probe/measuring.h"
#include "result/probe_report.h"

namespace tprimat::engine {

// Walks through at least 1 GB and four times the last-level cache (less on machines with less free memory), for about
// three seconds with all kinds. `threads` as in measure_gemm_peak. Throws Error when memory runs out.
MemoryBandwidth measure_memory_bandwidth(int threads);
MemoryBandwidth measure_memory_bandwidth(int threads, const std::vector<StreamKernel>& kinds);

// All probes of the CPU, one after the other; about 12 seconds. `threads` as in measure_gemm_peak.
ProbeReport run_cpu_probes(int threads);

// What trainings in these precisions are compared with, in about three seconds: the peaks of their matrix products,
// none for fp8 and tf32, and the memory's triad. 16-bit numbers without instructions are multiplied in fp32, and have
// its peak.
ProbeReport run_peak_probe(const std::vector<Precision>& precisions, int threads);

// What a model's own products achieve, and the peak that they compare with.
struct ModelProbeReport {
  std::string cpu;
  int64_t threads = 0;
  std::vector<GemmPeak> matmul;   // as in ProbeReport
  std::vector<ModelRate> models;  // one per format, in the order of `matmul`

  static constexpr auto fields() {
    using P = ModelProbeReport;
    return field_list(field("cpu", &P::cpu, "name reported by the processor"),
                      field("threads", &P::threads, "threads used"),
                      field("matmul", &P::matmul, "achievable matrix-product rate by number format"),
                      field("models", &P::models, "rate of the model's own products, by number format"));
  }
};

// In the formats of trainings that the CPU has instructions for. `tokens` is MBS·SL.
ModelProbeReport run_model_probes(const ModelSpec& model, int64_t tokens, int threads);

}  // namespace tprimat::engine

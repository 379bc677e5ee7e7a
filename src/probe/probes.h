#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/gemm_probe.h"
#include "probe/memory_probe.h"
#include "probe/model_products.h"

namespace tprimat {

// What this machine achieves.
struct ProbeReport {
  std::string cpu;  // as the processor gives it
  int64_t threads = 0;
  std::vector<GemmPeak> matmul;                // one per format that the CPU has instructions for
  std::vector<ProductFormat> no_instructions;  // the other formats
  MemoryBandwidth memory;

  static constexpr auto fields() {
    using P = ProbeReport;
    return std::tuple{
        field("cpu", &P::cpu, "as the processor gives it"), field("threads", &P::threads, "threads that measured"),
        field("matmul", &P::matmul, "achievable matrix-product rate by number format"),
        field("no_instructions", &P::no_instructions, "number formats that this processor has no instructions for"),
        field("memory", &P::memory, "achievable memory bandwidth")};
  }
};

// All probes of the CPU, one after the other; about 12 seconds. `threads` as in measure_gemm_peak.
ProbeReport run_cpu_probes(int threads);

// What a model's own products achieve, and the peak that they compare with.
struct ModelProbeReport {
  std::string cpu;
  int64_t threads = 0;
  std::vector<GemmPeak> matmul;   // as in ProbeReport
  std::vector<ModelRate> models;  // one per format, in the order of `matmul`

  static constexpr auto fields() {
    using P = ModelProbeReport;
    return std::tuple{field("cpu", &P::cpu, "as the processor gives it"),
                      field("threads", &P::threads, "threads that measured"),
                      field("matmul", &P::matmul, "achievable matrix-product rate by number format"),
                      field("models", &P::models, "what the model's own products achieve, by number format")};
  }
};

// In the formats of trainings that the CPU has instructions for. `tokens` is MBS·SL.
ModelProbeReport run_model_probes(const ModelSpec& model, int64_t tokens, int threads);

}  // namespace tprimat

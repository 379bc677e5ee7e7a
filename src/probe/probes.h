#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/gemm_probe.h"
#include "probe/memory_probe.h"

namespace tprimat {

// What this machine achieves.
struct ProbeReport {
  std::string cpu;  // as the processor gives it
  int64_t threads = 0;
  std::vector<GemmPeak> matmul;  // one per precision that the CPU has instructions for
  MemoryBandwidth memory;

  static constexpr auto fields() {
    using P = ProbeReport;
    return std::tuple{field("cpu", &P::cpu, "as the processor gives it"),
                      field("threads", &P::threads, "threads that measured"),
                      field("matmul", &P::matmul, "achievable matrix-product rate by precision"),
                      field("memory", &P::memory, "achievable memory bandwidth")};
  }
};

// All probes of the CPU, one after the other. `threads` as in measure_gemm_peak.
ProbeReport run_cpu_probes(int threads);

}  // namespace tprimat

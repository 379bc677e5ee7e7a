#include "probe/probes.h"

#include "device/parallel.h"
#include "telemetry/cpu_facts.h"

namespace tprimat {

ProbeReport run_cpu_probes(int threads) {
  set_thread_count(threads);
  ProbeReport report;
  report.cpu = read_cpu_facts("/", count_affinity()).model_name;
  report.threads = thread_count();
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    if (auto peak = measure_gemm_peak(precision, threads)) report.matmul.push_back(std::move(*peak));
  report.memory = measure_memory_bandwidth(threads);
  return report;
}

}  // namespace tprimat

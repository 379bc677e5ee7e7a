#include "probe/probes.h"

#include "device/parallel.h"
#include "telemetry/machine.h"

namespace tprimat::engine {
namespace {

std::string cpu_name() { return read_cpu_facts("/", count_affinity()).model_name; }

}  // namespace

ProbeReport run_cpu_probes(int threads) {
  set_thread_count(threads);
  ProbeReport report;
  report.cpu = cpu_name();
  report.threads = thread_count();
  for (const auto& [format, name] : EnumNames<ProductFormat>::values) {
    if (auto peak = measure_gemm_peak(format, threads))
      report.matmul.push_back(std::move(*peak));
    else
      report.no_instructions.push_back(format);
  }
  report.memory = measure_memory_bandwidth(threads);
  return report;
}

ProbeReport run_peak_probe(const std::vector<Precision>& precisions, int threads) {
  set_thread_count(threads);
  ProbeReport report;
  report.cpu = cpu_name();
  report.threads = thread_count();
  for (const Precision precision : precisions) {
    auto peak = measure_gemm_peak(precision, threads);
    if (peak && report.find_peak(peak->precision) == nullptr) report.matmul.push_back(std::move(*peak));
  }
  report.memory = measure_memory_bandwidth(threads, {StreamKernel::triad});
  return report;
}

ModelProbeReport run_model_probes(const ModelSpec& model, int64_t tokens, int threads) {
  set_thread_count(threads);
  ModelProbeReport report;
  report.cpu = cpu_name();
  report.threads = thread_count();
  for (const ProductFormat format : {ProductFormat::fp32, ProductFormat::bf16, ProductFormat::fp16}) {
    auto peak = measure_gemm_peak(format, threads);
    if (!peak) continue;
    report.matmul.push_back(std::move(*peak));
    report.models.push_back(*measure_model_products(model, tokens, format, threads));
  }
  return report;
}

}  // namespace tprimat::engine

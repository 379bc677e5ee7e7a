#include "planner/processor.h"

#include <limits>

namespace tprimat::planner {

Machine processor_machine(const ProcessorFacts& facts) {
  Machine machine;
  machine.id = facts.name.empty() ? "cpu" : facts.name;
  machine.architecture = "cpu";
  machine.peak_16 = facts.peak_16, machine.peak_32 = facts.peak_32, machine.widens = facts.widens;
  machine.memory_bytes = facts.memory_bytes;
  machine.memory_bandwidth = facts.memory_bandwidth;
  machine.cores = facts.threads;
  machine.gpus_per_domain = std::numeric_limits<int64_t>::max();
  return machine;
}

std::optional<ProcessorFacts> processor_facts(const ProbeReport& report) {
  if (report.cpu.empty() || report.matmul.empty()) return std::nullopt;
  const auto peak = [&](ProductFormat format) {
    const GemmPeak* measured = report.find_peak(format);
    return measured == nullptr ? 0 : measured->flops_per_second;
  };
  ProcessorFacts facts;
  facts.name = report.cpu, facts.threads = report.threads;
  facts.peak_16 = peak(ProductFormat::bf16), facts.peak_32 = peak(ProductFormat::fp32);
  facts.widens = facts.peak_16 == 0;
  if (facts.widens) facts.peak_16 = facts.peak_32;
  facts.memory_bandwidth = report.memory.rate(StreamKernel::triad).value_or(0);
  return facts;
}

}  // namespace tprimat::planner

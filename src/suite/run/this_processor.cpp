#include "run/this_processor.h"

#include <algorithm>

#include "base/log.h"
#include "launch/trainer_program.h"
#include "planner/machine.h"
#include "process/process.h"
#include "telemetry/gpu_libraries.h"
#include "telemetry/machine.h"

namespace tprimat::suite {

planner::Machine measure_processor() {
  log_note("measuring this processor for a few seconds; other work on it lowers the figures");
  const MachineFacts machine = read_machine(open_gpu_libraries());
  LocalRunner runner;
  auto measured =
      planner::processor_facts(probe_processor(runner, {Precision::bf16, Precision::fp32}, machine.cpu.usable_threads));
  if (!measured)
    throw Error(Problem{"the measurement does not yield the processor's peaks and bandwidth", k_trainer_name, ""},
                ExitStatus::missing_component);
  planner::ProcessorFacts& facts = *measured;
  const double whole = machine.memory_bytes.value_or(0);
  facts.memory_bytes = std::min(whole, machine.memory_limit_bytes.value_or(whole));
  return planner::processor_machine(facts);
}

}  // namespace tprimat::suite

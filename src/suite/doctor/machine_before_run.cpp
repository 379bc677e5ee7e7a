#include "doctor/machine_before_run.h"

#include <utility>

#include "doctor/checks.h"

namespace tprimat::suite {

DoctorFacts read_machine_before_run(const RunNeeds& needs, const MachineFacts& machine,
                                    const std::vector<std::shared_ptr<const GpuLibrary>>& libraries) {
  const bool on_gpus = needs.platform != Platform::cpu;
  DoctorFacts facts;
  facts.request.platform = needs.platform;
  facts.request.output = needs.output;
  facts.machine = machine;
  facts.host = read_host_facts("/", on_gpus ? 1.0 : 0.5);
  facts.output = read_folder_facts(needs.output);
  if (on_gpus)
    facts.gpus = read_gpus(libraries, needs.gpus);
  else
    facts.host.pci_gpus.clear();  // of no use to the run
  return facts;
}

DoctorReport examine_machine(const DoctorFacts& facts) {
  std::vector<MachineFinding> findings;
  for (const Check check : machine_checks())
    for (MachineFinding& finding : check(facts)) findings.push_back(std::move(finding));
  return make_doctor_report(findings);
}

}  // namespace tprimat::suite

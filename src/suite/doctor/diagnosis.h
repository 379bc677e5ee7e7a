#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "doctor/checks.h"
#include "doctor/doctor_facts.h"
#include "text/json.h"

namespace tprimat::suite {

// All findings, grouped by area, the worst of each area first.
struct MachineDiagnosis {
  std::vector<MachineFinding> findings;
  size_t count(MachineSeverity severity) const;
  MachineSeverity worst() const;
};

MachineDiagnosis diagnose(const DoctorFacts& facts);

// "fit to measure, with 2 warnings and 3 notes"
std::string summarise(const MachineDiagnosis& diagnosis);

// The summary, then a table; `brief` omits the findings that are ok.
std::string render_diagnosis(const MachineDiagnosis& diagnosis, bool brief);
Json diagnosis_to_json(const MachineDiagnosis& diagnosis, const DoctorFacts& facts);

// Broken: ExitStatus::work_failed. A requested component is missing: ExitStatus::missing_component. Else done.
ExitStatus exit_status_of(const MachineDiagnosis& diagnosis);

}  // namespace tprimat::suite

#pragma once

#include <string>
#include <vector>

#include "base/exit_status.h"
#include "doctor/doctor_facts.h"
#include "doctor/finding.h"
#include "text/json.h"

namespace tprimat {

// All findings, grouped by area, the worst of each area first.
struct Diagnosis {
  std::vector<Finding> findings;
  size_t count(Severity severity) const;
  Severity worst() const;
};

Diagnosis diagnose(const DoctorFacts& facts);

// "fit to measure, with 2 warnings and 3 notes"
std::string summarise(const Diagnosis& diagnosis);

// The summary, then a table; with `brief` without what is in order.
std::string render_diagnosis(const Diagnosis& diagnosis, bool brief);
Json diagnosis_to_json(const Diagnosis& diagnosis, const DoctorFacts& facts);

// Broken: ExitStatus::work_failed. Something that was asked for is missing: ExitStatus::missing_component. Else done.
ExitStatus exit_status_of(const Diagnosis& diagnosis);

}  // namespace tprimat

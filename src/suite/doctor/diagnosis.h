#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "doctor/checks.h"
#include "doctor/doctor_facts.h"
#include "text/fields.h"

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

namespace document {

// `tprimat doctor --json`: its JSON and its schema follow from the field list.
struct Diagnosis {
  std::string summary;
  MachineSeverity worst = MachineSeverity::ok;
  Platform platform = Platform::cpu;
  std::map<MachineSeverity, int64_t> counts;
  std::vector<MachineFinding> findings;

  static constexpr auto fields() {
    using D = Diagnosis;
    return field_list(field("summary", &D::summary, "whether the machine is fit to measure, as a sentence"),
                      field("worst", &D::worst, "highest severity of the findings"),
                      field("platform", &D::platform, "platform that was examined"),
                      field("counts", &D::counts, "number of findings by severity; every severity is there"),
                      field("findings", &D::findings, "findings by area, the worst of each area first"));
  }
};
Diagnosis describe_diagnosis(const MachineDiagnosis& diagnosis, const DoctorFacts& facts);

// One framework that `tprimat doctor --install` installed.
struct InstalledFramework {
  Framework id = Framework::native;
  std::string version, place;

  static constexpr auto fields() {
    using I = InstalledFramework;
    return field_list(field("id", &I::id, "framework"), field("version", &I::version, "its version"),
                      field("place", &I::place, "folder of the installation"));
  }
};

}  // namespace document

// Broken: ExitStatus::work_failed. A requested component is missing: ExitStatus::missing_component. Else done.
ExitStatus exit_status_of(const MachineDiagnosis& diagnosis);

}  // namespace tprimat::suite

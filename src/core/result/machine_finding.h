#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat {

// Severity of a finding about a machine, in ascending order.
enum class MachineSeverity : uint8_t {
  ok,
  note,     // worth knowing; figures are valid
  warning,  // figures are valid, but slower or noisier than this machine allows
  missing,  // a requested component is missing
  broken,   // measurements on this machine cannot be trusted
};
constexpr MachineSeverity unknown_word(MachineSeverity) { return MachineSeverity::warning; }

struct MachineFinding {
  MachineSeverity severity = MachineSeverity::ok;
  std::string area;                      // "GPU 0", "processor", "frameworks"
  std::string what;                      // a sentence with the figures
  std::string remedy;                    // what to do; may be empty
  std::optional<std::string> code = {};  // what it is about whatever its figures: "governor"; of a warning or worse
  static constexpr auto fields() {
    using F = MachineFinding;
    return field_list(
        field("severity", &F::severity, "ok, note, warning, missing or broken"),
        field("area", &F::area, "what it is about"), field("what", &F::what, "what was found"),
        field("remedy", &F::remedy, "what to do about it"),
        field("code", &F::code, "the kind of the finding, the same whatever its figures; of a warning or worse"));
  }
};

// What `tprimat doctor` finds just before a run, as the run's result keeps it.
struct DoctorReport {
  int64_t passed = 0;                    // findings below a warning
  std::vector<MachineFinding> findings;  // the others, the worst first
  std::optional<int64_t> left_out = {};  // of these, where there are too many
  static constexpr auto fields() {
    using D = DoctorReport;
    return field_list(field("passed", &D::passed, "findings in order or only notes"),
                      field("findings", &D::findings, "warnings and worse, the worst first"),
                      field("left_out", &D::left_out, "further ones that are not stored"));
  }
};

// Drops the findings below a warning, orders the others and keeps the worst of them with texts of bounded length.
DoctorReport make_doctor_report(const std::vector<MachineFinding>& findings);

// "processor: other processes keep 2.0 of 2 hardware threads busy -> wait, or stop them"
std::string describe(const MachineFinding& finding);

}  // namespace tprimat

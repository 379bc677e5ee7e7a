#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "doctor/doctor_facts.h"
#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat::suite {

// Severity of a finding, in ascending order.
enum class MachineSeverity {
  ok,
  note,     // worth knowing; figures are valid
  warning,  // figures are valid, but slower or noisier than this machine allows
  missing,  // a requested component is missing
  broken,   // measurements on this machine cannot be trusted
};

struct MachineFinding {
  MachineSeverity severity = MachineSeverity::ok;
  std::string area;    // "GPU 0", "processor", "frameworks"
  std::string what;    // a sentence with the figures
  std::string remedy;  // what to do; may be empty
  static constexpr auto fields() {
    using F = MachineFinding;
    return field_list(field("severity", &F::severity, "ok, note, warning, missing or broken"),
                      field("area", &F::area, "what it is about"), field("what", &F::what, "what was found"),
                      field("remedy", &F::remedy, "what to do about it"));
  }
};

// Collects the findings of one area.
class AreaFindings {
 public:
  explicit AreaFindings(std::string area) : area_(std::move(area)) {}
  void add(MachineSeverity severity, std::string what, std::string remedy = "") {
    findings_.push_back({severity, area_, std::move(what), std::move(remedy)});
  }
  void ok(std::string what) { add(MachineSeverity::ok, std::move(what)); }
  void note(std::string what, std::string remedy = "") {
    add(MachineSeverity::note, std::move(what), std::move(remedy));
  }
  void warn(std::string what, std::string remedy) { add(MachineSeverity::warning, std::move(what), std::move(remedy)); }
  std::vector<MachineFinding> take() { return std::move(findings_); }

 private:
  std::string area_;
  std::vector<MachineFinding> findings_;
};

// Each check judges one area from the facts alone.
using Check = std::vector<MachineFinding> (*)(const DoctorFacts&);

std::vector<MachineFinding> check_drivers(
    const DoctorFacts& facts);  // whether the platform is present, and which libraries see it
std::vector<MachineFinding> check_gpus(const DoctorFacts& facts);  // an area for each GPU
std::vector<MachineFinding> check_processor(const DoctorFacts& facts);
std::vector<MachineFinding> check_memory(const DoctorFacts& facts);
std::vector<MachineFinding> check_storage(const DoctorFacts& facts);
std::vector<MachineFinding> check_limits(const DoctorFacts& facts);
std::vector<MachineFinding> check_system(const DoctorFacts& facts);
std::vector<MachineFinding> check_frameworks(const DoctorFacts& facts);
std::vector<MachineFinding> check_tools(const DoctorFacts& facts);
std::vector<MachineFinding> check_gpu_libraries(
    const DoctorFacts& facts);  // the libraries that the native trainer loads

// All of them, in the order of the report.
std::span<const Check> doctor_checks();

}  // namespace tprimat::suite

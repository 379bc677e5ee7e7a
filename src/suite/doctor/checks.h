#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "doctor/doctor_facts.h"
#include "text/enum_names.h"
#include "text/fields.h"

namespace tprimat::suite {

// How much a finding matters, the least first.
enum class MachineSeverity {
  ok,
  note,     // good to know; figures hold
  warning,  // figures hold, but are not the best or not the steadiest that this machine gives
  missing,  // something that was asked for is not here
  broken,   // what is measured here is not to be trusted
};

struct MachineFinding {
  MachineSeverity severity = MachineSeverity::ok;
  std::string area;    // "GPU 0", "processor", "frameworks"
  std::string what;    // a sentence with the figures
  std::string remedy;  // what to do; empty where nothing is to be done
  static constexpr auto fields() {
    using F = MachineFinding;
    return field_list(field("severity", &F::severity, "ok, note, warning, missing or broken"),
                      field("area", &F::area, "what it is about"), field("what", &F::what, "what was found"),
                      field("remedy", &F::remedy, "what to do about it"));
  }
};

// Collects what is said of one area.
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

// Each judges one area by facts alone.
using Check = std::vector<MachineFinding> (*)(const DoctorFacts&);

std::vector<MachineFinding> check_drivers(const DoctorFacts& facts);  // is the platform there, which libraries see it
std::vector<MachineFinding> check_gpus(const DoctorFacts& facts);     // an area for each GPU
std::vector<MachineFinding> check_processor(const DoctorFacts& facts);
std::vector<MachineFinding> check_memory(const DoctorFacts& facts);
std::vector<MachineFinding> check_storage(const DoctorFacts& facts);
std::vector<MachineFinding> check_limits(const DoctorFacts& facts);
std::vector<MachineFinding> check_system(const DoctorFacts& facts);
std::vector<MachineFinding> check_frameworks(const DoctorFacts& facts);
std::vector<MachineFinding> check_tools(const DoctorFacts& facts);
std::vector<MachineFinding> check_gpu_libraries(const DoctorFacts& facts);  // what the native trainer loads

// All of them, in the order of the report.
std::span<const Check> doctor_checks();

}  // namespace tprimat::suite

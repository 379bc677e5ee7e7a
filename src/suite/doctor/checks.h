#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "doctor/doctor_facts.h"
#include "result/machine_finding.h"

namespace tprimat::suite {

// Collects the findings of one area.
class AreaFindings {
 public:
  explicit AreaFindings(std::string area) : area_(std::move(area)) {}
  void add(MachineSeverity severity, std::string code, std::string what, std::string remedy) {
    findings_.push_back({severity, area_, std::move(what), std::move(remedy), std::move(code)});
  }
  void ok(std::string what) { findings_.push_back({MachineSeverity::ok, area_, std::move(what), "", {}}); }
  void note(std::string what, std::string remedy = "") {
    findings_.push_back({MachineSeverity::note, area_, std::move(what), std::move(remedy), {}});
  }
  void warn(std::string code, std::string what, std::string remedy) {
    add(MachineSeverity::warning, std::move(code), std::move(what), std::move(remedy));
  }
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

// Those of the machine itself, which a result keeps: what is installed says nothing about a run that starts.
std::span<const Check> machine_checks();

}  // namespace tprimat::suite

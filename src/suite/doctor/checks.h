#pragma once

#include <span>
#include <vector>

#include "doctor/doctor_facts.h"
#include "doctor/finding.h"

namespace tprimat::suite {

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

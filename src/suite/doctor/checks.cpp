#include "doctor/checks.h"

namespace tprimat::suite {
namespace {

// Those of the machine come first.
constexpr Check k_checks[] = {check_drivers, check_gpus,   check_processor,  check_memory, check_storage,
                              check_limits,  check_system, check_frameworks, check_tools,  check_gpu_libraries};
constexpr size_t k_machine_checks = 7;

}  // namespace

std::span<const Check> doctor_checks() { return k_checks; }

std::span<const Check> machine_checks() { return doctor_checks().first(k_machine_checks); }

}  // namespace tprimat::suite

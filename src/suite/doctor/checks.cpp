#include "doctor/checks.h"

namespace tprimat::suite {
namespace {

constexpr Check k_checks[] = {check_drivers, check_gpus,   check_processor,  check_memory, check_storage,
                              check_limits,  check_system, check_frameworks, check_tools,  check_gpu_libraries};

}  // namespace

std::span<const Check> doctor_checks() { return k_checks; }

}  // namespace tprimat::suite

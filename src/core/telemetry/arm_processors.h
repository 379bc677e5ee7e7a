#pragma once

#include <string>

namespace tprimat {

// The name of an Arm processor, of which /proc/cpuinfo has numbers only: "CPU implementer" (0x41) and "CPU part"
// (0xd4f). Names and numbers are those of lscpu and of the kernel's cputype.h. Empty: not known.
std::string arm_processor_name(const std::string& implementer, const std::string& part);

}  // namespace tprimat

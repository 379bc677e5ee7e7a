#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace tprimat {

// What runs this machine where it is a virtual one: "QEMU KVM Virtual Machine", "Amazon EC2 c8g.16xlarge". On x86 the
// processor says whether it is; on Arm the firmware's names of maker and product do. Absent: none detected.
std::optional<std::string> find_virtual_machine(const std::filesystem::path& root);

}  // namespace tprimat

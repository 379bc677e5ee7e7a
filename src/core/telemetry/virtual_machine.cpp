#include "telemetry/virtual_machine.h"

#include <algorithm>

#include "telemetry/small_files.h"

namespace tprimat {
namespace {

namespace fs = std::filesystem;

// How the maker or the product of a virtual machine begins. "Virtual Machine" is Microsoft's product.
constexpr std::string_view k_virtual_names[] = {"Alibaba Cloud ECS",
                                                "Amazon EC2",
                                                "Apple Virtualization",
                                                "BHYVE",
                                                "Bochs",
                                                "Google Compute Engine",
                                                "KVM",
                                                "KubeVirt",
                                                "OpenStack",
                                                "Parallels",
                                                "QEMU",
                                                "VMW",
                                                "VMware",
                                                "VirtualBox",
                                                "Virtual Machine",
                                                "Xen",
                                                "innotek GmbH"};

bool is_virtual_name(std::string_view name) {
  return std::any_of(std::begin(k_virtual_names), std::end(k_virtual_names),
                     [&](std::string_view start) { return name.starts_with(start); });
}

// Arm's processors have no flag for it. "c7g.metal" of Amazon is a whole machine.
bool has_virtual_name(const fs::path& root, const std::string& vendor, const std::string& product) {
  std::error_code error;
  if (fs::exists(root / "proc/device-tree/hypervisor", error)) return true;
  if (read_small_file(root / "sys/hypervisor/type").has_value()) return true;
  const bool is_whole = product.find(".metal") != std::string::npos;
  return !is_whole && (is_virtual_name(vendor) || is_virtual_name(product));
}

}  // namespace

std::optional<std::string> find_virtual_machine(const fs::path& root) {
  const std::string cpuinfo = read_small_file(root / "proc/cpuinfo").value_or("");
  const std::string vendor = read_small_file(root / "sys/class/dmi/id/sys_vendor").value_or("");
  const std::string product = read_small_file(root / "sys/class/dmi/id/product_name").value_or("");
  const bool is_arm = cpuinfo.find("CPU implementer") != std::string::npos;
  const bool is_virtual =
      is_arm ? has_virtual_name(root, vendor, product) : cpuinfo.find(" hypervisor") != std::string::npos;
  if (!is_virtual) return std::nullopt;
  if (vendor.empty() && product.empty())
    return read_small_file(root / "sys/hypervisor/type").value_or("unnamed hypervisor");
  return vendor + (vendor.empty() || product.empty() ? "" : " ") + product;
}

}  // namespace tprimat

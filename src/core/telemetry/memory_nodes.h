#pragma once

#include <filesystem>
#include <vector>

namespace tprimat {

// The processors of a memory domain (NUMA node) that this process may use.
struct MemoryNode {
  int number = 0;
  std::vector<int> processors;
  bool operator==(const MemoryNode&) const = default;
};

// `allowed`: this process's affinity, which a control group's cpuset limits. Domains without one of these are left out.
// Empty if the kernel names no domains or leaves a processor out, or if a launcher or user has chosen fewer processors
// than the first process of the machine or container has. `root` is "/"; tests give a folder.
std::vector<MemoryNode> usable_memory_nodes(const std::filesystem::path& root, const std::vector<int>& allowed);

}  // namespace tprimat

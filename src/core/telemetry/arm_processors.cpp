#include "telemetry/arm_processors.h"

#include <cstdlib>

namespace tprimat {
namespace {

struct ArmProcessor {
  long implementer, part;
  const char* name;
};

// Of servers, workstations and the boards beside them, not of phones.
constexpr ArmProcessor k_arm_processors[] = {
    {0x41, 0xd03, "Cortex-A53"},     {0x41, 0xd05, "Cortex-A55"},  {0x41, 0xd07, "Cortex-A57"},
    {0x41, 0xd08, "Cortex-A72"},     {0x41, 0xd0b, "Cortex-A76"},  {0x41, 0xd0c, "Neoverse-N1"},
    {0x41, 0xd40, "Neoverse-V1"},    {0x41, 0xd41, "Cortex-A78"},  {0x41, 0xd42, "Cortex-A78AE"},
    {0x41, 0xd49, "Neoverse-N2"},    {0x41, 0xd4a, "Neoverse-E1"}, {0x41, 0xd4f, "Neoverse-V2"},
    {0x41, 0xd83, "Neoverse-V3AE"},  {0x41, 0xd84, "Neoverse-V3"}, {0x41, 0xd85, "Cortex-X925"},
    {0x41, 0xd87, "Cortex-A725"},    {0x41, 0xd8e, "Neoverse-N3"}, {0x43, 0x0af, "ThunderX2-99xx"},
    {0x43, 0x0b8, "ThunderX3-T110"}, {0x46, 0x001, "A64FX"},       {0x48, 0xd01, "Kunpeng-920"},
    {0x4e, 0x004, "Carmel"},         {0x4e, 0x010, "Olympus"},     {0x6d, 0xd49, "Azure-Cobalt-100"},
    {0xc0, 0xac3, "Ampere-1"},       {0xc0, 0xac4, "Ampere-1a"},
};

}  // namespace

std::string arm_processor_name(const std::string& implementer, const std::string& part) {
  if (implementer.empty() || part.empty()) return "";
  const long maker = std::strtol(implementer.c_str(), nullptr, 0), number = std::strtol(part.c_str(), nullptr, 0);
  for (const ArmProcessor& each : k_arm_processors)
    if (each.implementer == maker && each.part == number) return each.name;
  return "";
}

}  // namespace tprimat

#include "telemetry/arm_processors.h"

#include <cstdlib>
#include <optional>

namespace tprimat {
namespace {

struct ArmProcessor {
  long implementer, part;
  const char* name;
};

// Of servers, workstations and the boards beside them, not of phones.
constexpr ArmProcessor k_arm_processors[] = {
    {0x41, 0xd03, "Cortex-A53"},      {0x41, 0xd05, "Cortex-A55"},       {0x41, 0xd07, "Cortex-A57"},
    {0x41, 0xd08, "Cortex-A72"},      {0x41, 0xd0b, "Cortex-A76"},       {0x41, 0xd0c, "Neoverse-N1"},
    {0x41, 0xd40, "Neoverse-V1"},     {0x41, 0xd41, "Cortex-A78"},       {0x41, 0xd42, "Cortex-A78AE"},
    {0x41, 0xd49, "Neoverse-N2"},     {0x41, 0xd4a, "Neoverse-E1"},      {0x41, 0xd4f, "Neoverse-V2"},
    {0x41, 0xd83, "Neoverse-V3AE"},   {0x41, 0xd84, "Neoverse-V3"},      {0x41, 0xd85, "Cortex-X925"},
    {0x41, 0xd87, "Cortex-A725"},     {0x41, 0xd8e, "Neoverse-N3"},      {0x43, 0x0a1, "ThunderX-88XX"},
    {0x43, 0x0af, "ThunderX2-99xx"},  {0x43, 0x0b8, "ThunderX3-T110"},   {0x46, 0x001, "A64FX"},
    {0x48, 0xd01, "Kunpeng-920"},     {0x4e, 0x004, "Carmel"},           {0x4e, 0x010, "Olympus"},
    {0x50, 0x000, "X-Gene"},          {0x51, 0xc00, "Falkor"},           {0x61, 0x022, "Icestorm-M1"},
    {0x61, 0x023, "Firestorm-M1"},    {0x61, 0x024, "Icestorm-M1-Pro"},  {0x61, 0x025, "Firestorm-M1-Pro"},
    {0x61, 0x028, "Icestorm-M1-Max"}, {0x61, 0x029, "Firestorm-M1-Max"}, {0x61, 0x032, "Blizzard-M2"},
    {0x61, 0x033, "Avalanche-M2"},    {0x6d, 0xd49, "Azure-Cobalt-100"}, {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1a"},
};

// "0x41"; nothing for any other text.
std::optional<long> parse_id(const std::string& text) {
  if (!text.starts_with("0x")) return std::nullopt;
  char* end = nullptr;
  const long id = std::strtol(text.c_str(), &end, 16);
  return end == text.c_str() + text.size() ? std::optional(id) : std::nullopt;
}

}  // namespace

std::string arm_processor_name(const std::string& implementer, const std::string& part) {
  const std::optional<long> maker = parse_id(implementer), number = parse_id(part);
  for (const ArmProcessor& each : k_arm_processors)
    if (each.implementer == maker && each.part == number) return each.name;
  return "";
}

}  // namespace tprimat

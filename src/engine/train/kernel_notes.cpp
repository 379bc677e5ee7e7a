#include "train/kernel_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/checksum.h"
#include "text/format.h"

namespace tprimat::engine {
namespace {

bool is_same_everywhere(const std::string& text, Communicator& world) {
  const auto digest = static_cast<double>(crc32c(text));
  double bounds[2] = {digest, -digest};
  world.all_reduce(bounds, 2, Reduction::max);
  return bounds[0] == -bounds[1];
}

}  // namespace

std::vector<std::string> take_shared_warnings(KernelReport& report, Communicator& world) {
  if (!is_same_everywhere(join(report.warnings, "\n"), world)) return take_own_warnings(report, world);
  const std::vector<std::string> warnings = std::exchange(report.warnings, {});
  return world.rank() == 0 ? warnings : std::vector<std::string>();
}

std::vector<std::string> take_own_warnings(KernelReport& report, const Communicator& world) {
  std::vector<std::string> warnings = std::exchange(report.warnings, {});
  if (world.size() > 1)
    for (std::string& warning : warnings) warning = fmt::format("rank {}: {}", world.rank(), warning);
  return warnings;
}

}  // namespace tprimat::engine

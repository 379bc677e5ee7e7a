#include "ops/gpu/fallbacks.h"

#include <set>

namespace tprimat::engine::gpu {

KernelReport& kernel_report() {
  static KernelReport report;
  return report;
}

void warn_once(const std::string& sentence) {
  static std::set<std::string> said;
  if (said.insert(sentence).second) kernel_report().warnings.push_back(sentence);
}

}  // namespace tprimat::engine::gpu

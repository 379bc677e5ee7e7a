#include "ops/library_versions.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl_version.h>

namespace tprimat::engine {

std::map<std::string, std::string> library_versions() {
  return {{"onednn", fmt::format("{}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH)}};
}

}  // namespace tprimat::engine

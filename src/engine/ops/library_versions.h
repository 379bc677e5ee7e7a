#pragma once

#include <map>
#include <string>

namespace tprimat::engine {

// "onednn" -> "2.6.3": the libraries that products on the processor are made with, as compiled.
std::map<std::string, std::string> library_versions();

}  // namespace tprimat::engine

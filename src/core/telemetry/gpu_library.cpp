#include "telemetry/gpu_library.h"

#include <dlfcn.h>

#include <utility>

namespace tprimat {

std::optional<SharedLibrary> SharedLibrary::open(const char* name) {
  void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  return SharedLibrary(handle);
}

SharedLibrary::SharedLibrary(SharedLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void* SharedLibrary::address(const char* symbol) const { return ::dlsym(handle_, symbol); }

}  // namespace tprimat

#include "device/gpu/profiler.h"

#include "device/gpu/find_library.h"
#include "device/gpu/runtime.h"

#if defined(TPRIMAT_GPU_HIP)
#include "base/error.h"
#else
#include <cuda_profiler_api.h>
#include <nvtx3/nvToolsExt.h>
#endif

namespace tprimat::engine::gpu::profiler {

#if defined(TPRIMAT_GPU_HIP)
namespace {

struct Roctx {
  int (*push)(const char*) = nullptr;
  int (*pop)() = nullptr;
  int (*resume)(uint64_t) = nullptr;
  int (*pause)(uint64_t) = nullptr;
};
Roctx load() {
  const WantedLibrary wanted{
      "ROCTX", {"librocprofiler-sdk-roctx.so.1", "librocprofiler-sdk-roctx.so"}, {}, "TPRIMAT_ROCTX", ""};
  Roctx roctx;
  try {
    void* const library = open_library(wanted);
    const auto bind = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find_function(library, name));
    };
    bind(roctx.push, "roctxRangePushA");
    bind(roctx.pop, "roctxRangePop");
    bind(roctx.resume, "roctxProfilerResume");
    bind(roctx.pause, "roctxProfilerPause");
  } catch (const Error&) {  // no profiler without it
  }
  return roctx;
}
const Roctx& roctx() {
  static const Roctx loaded = load();
  return loaded;
}

}  // namespace

void begin_range(const char* name) {
  if (roctx().push != nullptr) roctx().push(name);
}
void end_range() {
  if (roctx().pop != nullptr) roctx().pop();
}
void watch(bool watches) {
  const auto call = watches ? roctx().resume : roctx().pause;
  if (call != nullptr) call(0);
}
#else
void begin_range(const char* name) { nvtxRangePushA(name); }
void end_range() { nvtxRangePop(); }
void watch(bool watches) { driver::ignore(watches ? cudaProfilerStart() : cudaProfilerStop()); }
#endif

}  // namespace tprimat::engine::gpu::profiler

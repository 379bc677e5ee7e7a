// For libFuzzer: TPRIMAT_FUZZ_TARGET names the target.
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.h"

namespace {
const tprimat::FuzzTarget* target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("TPRIMAT_FUZZ_TARGET");
  target = tprimat::find_fuzz_target(name != nullptr ? name : "");
  if (target == nullptr) {
    std::fprintf(stderr, "TPRIMAT_FUZZ_TARGET must be one of:\n");
    for (const auto& each : tprimat::fuzz_targets()) std::fprintf(stderr, "  %s\n", each.name.c_str());
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tprimat::run_fuzz_target(*target, {reinterpret_cast<const char*>(data), size});
  return 0;
}

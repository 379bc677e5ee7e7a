#include "ops/cpu/instruction_sets.h"

#include <oneapi/dnnl/dnnl.h>

#include <hwy/highway.h>
#include <hwy/targets.h>
#include <cstdlib>

namespace tprimat::engine {
namespace {

bool is_allowed(dnnl_cpu_isa_t set) {
  static const dnnl_cpu_isa_t allowed = dnnl_get_effective_cpu_isa();
  return (allowed & set) == set;
}

}  // namespace

std::string instruction_limit() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    if (const char* const value = std::getenv(name); value != nullptr && *value != 0) return value;
  return "";
}

bool may_use_avx512() { return is_allowed(dnnl_cpu_isa_avx512_core); }
bool may_use_avx512_bf16() { return is_allowed(dnnl_cpu_isa_avx512_core_bf16); }
bool may_use_amx() { return is_allowed(dnnl_cpu_isa_avx512_core_amx); }
const bool k_rounds_to_bf16 = may_use_avx512_bf16();

void limit_kernels() {
#if HWY_ARCH_X86
  if (may_use_avx512()) return;
  const bool allows_avx2 = is_allowed(dnnl_cpu_isa_avx2);
  hwy::DisableTargets(allows_avx2 ? HWY_AVX2 - 1 : 2 * HWY_AVX2 - 1);  // the better a set, the lower its bit
  hwy::GetChosenTarget().DeInit();                                     // a kernel may have been chosen already
#endif
}

}  // namespace tprimat::engine

#pragma once

// What the kernels may use of this x86 CPU: what it has, as far as a variable permits by which users limit oneDNN
// (AVX2, AVX512_CORE_BF16, ...): https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
namespace tprimat::engine {

inline constexpr const char* k_instruction_limit = "ONEDNN_MAX_CPU_ISA";
bool may_use_avx512();
bool may_use_avx512_bf16();
bool may_use_amx();

// Before the first kernel is chosen: Highway's kernels keep to the same limit.
void limit_kernels();

}  // namespace tprimat::engine

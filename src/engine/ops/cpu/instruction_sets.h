#pragma once

#include <string>

// What the kernels may use of this x86 CPU: what it has, as far as ONEDNN_MAX_CPU_ISA permits, the variable by which
// users limit oneDNN (AVX2, ...): https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html
namespace tprimat::engine {

std::string instruction_limit();  // the value of that variable, or of its older name; empty if none
bool may_use_avx512();
bool may_use_avx512_bf16();
bool may_use_amx();
extern const bool k_rounds_to_bf16;  // by one instruction, VCVTNEPS2BF16 of AVX512-BF16

// Before the first kernel is chosen: Highway's kernels keep to the same limit.
void limit_kernels();

}  // namespace tprimat::engine

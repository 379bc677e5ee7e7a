#pragma once

#include <utility>

#include "text/enum_names.h"

// The field's terms. The first spelling of a value is the one we print.
namespace tprimat {

enum class Platform { nvd, amd, cpu };
constexpr auto enum_table(Platform) {
  return std::to_array<std::pair<Platform, std::string_view>>({{Platform::nvd, "nvd"},
                                                               {Platform::nvd, "nvidia"},
                                                               {Platform::nvd, "cuda"},
                                                               {Platform::amd, "amd"},
                                                               {Platform::amd, "rocm"},
                                                               {Platform::cpu, "cpu"}});
}
// "NVIDIA", "AMD", "CPU"
constexpr std::string_view display_name(Platform platform) {
  return platform == Platform::nvd ? "NVIDIA" : platform == Platform::amd ? "AMD" : "CPU";
}

enum class Framework { nemo, mega, deep, tran, fsdp, tita, prim, mgds, native };
constexpr auto enum_table(Framework) {
  return std::to_array<std::pair<Framework, std::string_view>>({{Framework::nemo, "nemo"},
                                                                {Framework::mega, "mega"},
                                                                {Framework::mega, "megatron"},
                                                                {Framework::mega, "megatron-lm"},
                                                                {Framework::deep, "deep"},
                                                                {Framework::deep, "deepspeed"},
                                                                {Framework::tran, "tran"},
                                                                {Framework::tran, "transformers"},
                                                                {Framework::fsdp, "fsdp"},
                                                                {Framework::tita, "tita"},
                                                                {Framework::tita, "torchtitan"},
                                                                {Framework::prim, "prim"},
                                                                {Framework::prim, "primus"},
                                                                {Framework::mgds, "mgds"},
                                                                {Framework::mgds, "megatron-deepspeed"},
                                                                {Framework::mgds, "megatron_deepspeed"},
                                                                {Framework::native, "native"}});
}

// "NeMo", "Megatron-LM"
constexpr std::string_view display_name(Framework framework) {
  switch (framework) {
    case Framework::nemo: return "NeMo";
    case Framework::mega: return "Megatron-LM";
    case Framework::deep: return "DeepSpeed";
    case Framework::tran: return "Transformers";
    case Framework::fsdp: return "FSDP2";
    case Framework::tita: return "torchtitan";
    case Framework::prim: return "Primus";
    case Framework::mgds: return "Megatron-DeepSpeed";
    case Framework::native: return "native";
  }
  return "?";
}

// The number format of the matrix products' inputs.
enum class Precision { fp32, tf32, bf16, fp16, fp8 };
constexpr auto enum_table(Precision) {
  return std::to_array<std::pair<Precision, std::string_view>>({{Precision::fp32, "fp32"},
                                                                {Precision::tf32, "tf32"},
                                                                {Precision::bf16, "bf16"},
                                                                {Precision::fp16, "fp16"},
                                                                {Precision::fp8, "fp8"},
                                                                {Precision::bf16, "bfloat16"},
                                                                {Precision::fp16, "float16"},
                                                                {Precision::fp32, "float32"}});
}

// How model FLOPs per token are counted; see spec/model_spec.h.
enum class FlopFormula { full, causal, six_n };
constexpr auto enum_table(FlopFormula) {
  return std::to_array<std::pair<FlopFormula, std::string_view>>(
      {{FlopFormula::full, "full"}, {FlopFormula::causal, "causal"}, {FlopFormula::six_n, "6n"}});
}

}  // namespace tprimat

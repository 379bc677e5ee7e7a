#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "text/enum_names.h"

namespace tprimat {

// How a weight is stored in a file. The names are those of config.json's `dtype`.
enum class NumberFormat { f32, f64, f16, bf16 };
constexpr auto enum_table(NumberFormat) {
  return std::to_array<std::pair<NumberFormat, std::string_view>>({{NumberFormat::f32, "float32"},
                                                                   {NumberFormat::f64, "float64"},
                                                                   {NumberFormat::f16, "float16"},
                                                                   {NumberFormat::bf16, "bfloat16"},
                                                                   {NumberFormat::f32, "fp32"},
                                                                   {NumberFormat::f64, "fp64"},
                                                                   {NumberFormat::f16, "fp16"},
                                                                   {NumberFormat::bf16, "bf16"}});
}

constexpr int64_t bytes_per_number(NumberFormat format) {
  return format == NumberFormat::f64 ? 8 : format == NumberFormat::f32 ? 4 : 2;
}

// Half precision (IEEE 754 binary16) and bfloat16 to single precision, exactly; and back, to the nearest, ties to even.
// Values beyond the range become infinite; a NaN stays a NaN and keeps its upper payload bits.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);

// Little-endian numbers, unaligned, to single precision and back. bytes.size() =
// values.size()·bytes_per_number(format). From float64 a value is rounded to the nearest float.
void decode_numbers(NumberFormat format, std::span<const std::byte> bytes, std::span<float> values);
void encode_numbers(NumberFormat format, std::span<const float> values, std::span<std::byte> bytes);

}  // namespace tprimat

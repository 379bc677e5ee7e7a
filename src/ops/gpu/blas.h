#pragma once

// cuBLASLt and hipBLASLt under one name: the few declarations that we need of each, as cublasLt.h (CUDA 12 and 13) and
// hipblaslt.h (ROCm 6 and 7) give them. Neither is needed to build: the library is loaded when the first product is
// made (find_library.h), and this is the only header in which the two differ.
#include <cstddef>
#include <cstdint>

#include "device/gpu/runtime.h"

namespace tprimat::gpu::blas {

using Status = int;  // zero: success
using Handle = void*;
using Operation = void*;   // what is done: transposes, number format of the sums, epilogue
using Layout = void*;      // one matrix, column-major
using Preference = void*;  // limits of the search for algorithms

struct Algorithm {
  uint64_t data[TPRIMAT_GPU_NAME(8, 3)];
};
struct Candidate {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status state;  // zero: the rest counts
  float waves;
  int reserved[4];
};

// cudaDataType_t and hipDataType: the same numbers. FNUZ are AMD's own 8-bit formats (CDNA3).
enum class Number : int {
  float32 = 0,
  float16 = 2,
  bfloat16 = 14,
  e4m3 = 28,
  e5m2 = 29,
  e4m3_fnuz = 1000,
  e5m2_fnuz = 1001
};

inline constexpr int k_as_is = TPRIMAT_GPU_NAME(0, 111), k_transposed = TPRIMAT_GPU_NAME(1, 112);
inline constexpr int k_compute_float = TPRIMAT_GPU_NAME(68, 2), k_compute_tf32 = TPRIMAT_GPU_NAME(77, 6);

namespace operation {
inline constexpr int k_transpose_a = TPRIMAT_GPU_NAME(3, 0), k_transpose_b = TPRIMAT_GPU_NAME(4, 1);
inline constexpr int k_epilogue = TPRIMAT_GPU_NAME(7, 2);  // uint32_t
inline constexpr int k_bias_pointer = TPRIMAT_GPU_NAME(8, 3), k_bias_type = TPRIMAT_GPU_NAME(26, 4);
inline constexpr int k_scale_a_pointer = TPRIMAT_GPU_NAME(17, 5), k_scale_b_pointer = TPRIMAT_GPU_NAME(18, 6);
inline constexpr int k_aux_pointer = TPRIMAT_GPU_NAME(11, 10), k_aux_stride = TPRIMAT_GPU_NAME(12, 11);
inline constexpr int k_fast_sums = TPRIMAT_GPU_NAME(25, -1);  // int8_t; hipBLASLt has none
}  // namespace operation

namespace preference {
inline constexpr int k_workspace_bytes = 1;                        // uint64_t
inline constexpr int k_first_alignment = TPRIMAT_GPU_NAME(5, -1);  // of a, then b, c, d; uint32_t; hipBLASLt has none
}  // namespace preference

// What follows a product, in the library's column-major words: the bias has as many values as D has rows.
enum class BlasEpilogue : uint32_t {
  none = 1,
  bias = 4,             // D = AB + bias
  gelu_aux = 160,       // aux = AB, D = gelu(aux)
  gelu_aux_bias = 164,  // aux = AB + bias, D = gelu(aux)
  dgelu = 192,          // D = AB ⊙ gelu'(aux)
  sums_of_b = 512,      // bias[column] = Σ B over the summed dimension; D = AB
};

struct BlasCalls {
  Status (*create)(Handle*);  // for the GPU in use, and for it alone
  Status (*destroy)(Handle);
  Status (*operation_create)(Operation*, int compute, int scale_type);
  Status (*operation_destroy)(Operation);
  Status (*operation_set)(Operation, int attribute, const void* value, size_t bytes);
  Status (*layout_create)(Layout*, int number, uint64_t rows, uint64_t cols, int64_t column_stride);
  Status (*layout_destroy)(Layout);
  Status (*preference_create)(Preference*);
  Status (*preference_destroy)(Preference);
  Status (*preference_set)(Preference, int attribute, const void* value, size_t bytes);
  Status (*find_candidates)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference, int room,
                            Candidate* candidates, int* count);
  // d = alpha·a·b + beta·c
  Status (*multiply)(Handle, Operation, const void* alpha, const void* a, Layout, const void* b, Layout,
                     const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace,
                     size_t workspace_bytes, Stream);
  const char* (*status_text)(Status);  // null where the library has none
};

// Of the library that is installed, loaded at the first call; the processor's own where kernels run on it
// (host_blas.cpp). Throws Error (missing component) where there is none.
const BlasCalls& functions();

}  // namespace tprimat::gpu::blas

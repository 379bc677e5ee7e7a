#pragma once

// cuBLASLt and hipBLASLt under one name: the few declarations that we need of each, as cublasLt.h (CUDA 12 and 13) and
// hipblaslt.h (ROCm 6 and 7) give them. Neither is needed to build: the library is loaded when the first product is
// made (find_library.h), and this is the only header in which the two differ.
#include <cstddef>
#include <cstdint>

#include "device/gpu/runtime.h"
#include "ops/gpu/blas_numbers.h"

namespace tprimat::engine::gpu::blas {

using Status = int;  // zero: success
using Handle = void*;
using Operation = void*;   // what is done: transposes, number format of the sums, epilogue
using Layout = void*;      // one matrix, column-major
using Preference = void*;  // limits of the search for algorithms

struct Algorithm {
  uint64_t data[TPRIMAT_GPU_NAME(cublas::k_algorithm_words, hipblas::k_algorithm_words)];
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
  float32 = cublas::CUDA_R_32F,
  float16 = cublas::CUDA_R_16F,
  bfloat16 = cublas::CUDA_R_16BF,
  e4m3 = cublas::CUDA_R_8F_E4M3,
  e5m2 = cublas::CUDA_R_8F_E5M2,
  e4m3_fnuz = hipblas::HIP_R_8F_E4M3_FNUZ,
  e5m2_fnuz = hipblas::HIP_R_8F_E5M2_FNUZ
};
static_assert(cublas::CUDA_R_32F == hipblas::HIP_R_32F && cublas::CUDA_R_16F == hipblas::HIP_R_16F &&
              cublas::CUDA_R_16BF == hipblas::HIP_R_16BF && cublas::CUDA_R_8F_E4M3 == hipblas::HIP_R_8F_E4M3 &&
              cublas::CUDA_R_8F_E5M2 == hipblas::HIP_R_8F_E5M2);

// TPRIMAT_BLAS_NUMBER(OP_N) is CUBLAS_OP_N or HIPBLAS_OP_N, TPRIMAT_BLASLT_NUMBER(EPILOGUE_BIAS) CUBLASLT_EPILOGUE_BIAS
// or HIPBLASLT_EPILOGUE_BIAS.
#define TPRIMAT_BLAS_NUMBER(name) TPRIMAT_GPU_NAME(cublas::CUBLAS_##name, hipblas::HIPBLAS_##name)
#define TPRIMAT_BLASLT_NUMBER(name) TPRIMAT_GPU_NAME(cublas::CUBLASLT_##name, hipblas::HIPBLASLT_##name)

inline constexpr int k_as_is = TPRIMAT_BLAS_NUMBER(OP_N), k_transposed = TPRIMAT_BLAS_NUMBER(OP_T);
inline constexpr int k_compute_float = TPRIMAT_BLAS_NUMBER(COMPUTE_32F),
                     k_compute_tf32 = TPRIMAT_BLAS_NUMBER(COMPUTE_32F_FAST_TF32);
inline constexpr int k_none = -1;  // of what one of the two libraries does not have

namespace operation {
inline constexpr int k_transpose_a = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_TRANSA),
                     k_transpose_b = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_TRANSB);
inline constexpr int k_epilogue = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_EPILOGUE);  // uint32_t
inline constexpr int k_bias_pointer = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_BIAS_POINTER),
                     k_bias_type = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_BIAS_DATA_TYPE);
inline constexpr int k_scale_a_pointer = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_A_SCALE_POINTER),
                     k_scale_b_pointer = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_B_SCALE_POINTER);
inline constexpr int k_aux_pointer = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_EPILOGUE_AUX_POINTER),
                     k_aux_stride = TPRIMAT_BLASLT_NUMBER(MATMUL_DESC_EPILOGUE_AUX_LD);
inline constexpr int k_fast_sums = TPRIMAT_GPU_NAME(cublas::CUBLASLT_MATMUL_DESC_FAST_ACCUM, k_none);  // int8_t
}  // namespace operation

namespace preference {
inline constexpr int k_workspace_bytes = TPRIMAT_BLASLT_NUMBER(MATMUL_PREF_MAX_WORKSPACE_BYTES);  // uint64_t
// Of a, then b, c, d; uint32_t.
inline constexpr int k_first_alignment = TPRIMAT_GPU_NAME(cublas::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, k_none);
}  // namespace preference

// What follows a product, in the library's column-major words: the bias has as many values as D has rows.
enum class BlasEpilogue : uint32_t {
  none = TPRIMAT_BLASLT_NUMBER(EPILOGUE_DEFAULT),
  bias = TPRIMAT_BLASLT_NUMBER(EPILOGUE_BIAS),                    // D = AB + bias
  gelu_aux = TPRIMAT_BLASLT_NUMBER(EPILOGUE_GELU_AUX),            // aux = AB, D = gelu(aux)
  gelu_aux_bias = TPRIMAT_BLASLT_NUMBER(EPILOGUE_GELU_AUX_BIAS),  // aux = AB + bias, D = gelu(aux)
  dgelu = TPRIMAT_BLASLT_NUMBER(EPILOGUE_DGELU),                  // D = AB ⊙ gelu'(aux)
  sums_of_b = TPRIMAT_BLASLT_NUMBER(EPILOGUE_BGRADB),  // bias[column] = Σ B over the summed dimension; D = AB
};
#undef TPRIMAT_BLAS_NUMBER
#undef TPRIMAT_BLASLT_NUMBER

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
  Status (*find_candidates)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference, int capacity,
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

}  // namespace tprimat::engine::gpu::blas

#pragma once

#include <cstdint>

// The vendors' numbers under the vendors' names. tests/vendor_headers holds them against the headers that are
// installed.
namespace tprimat::engine::gpu::blas {

// cublasLt.h, cublas_api.h and library_types.h of CUDA 12 and 13.
namespace cublas {
inline constexpr int k_algorithm_words = 8;  // of cublasLtMatmulAlgo_t, uint64_t
inline constexpr int CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14, CUDA_R_8F_E4M3 = 28, CUDA_R_8F_E5M2 = 29;
inline constexpr int CUBLAS_OP_N = 0, CUBLAS_OP_T = 1;
inline constexpr int CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77;
inline constexpr int CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4;
inline constexpr int CUBLASLT_MATMUL_DESC_EPILOGUE = 7;
inline constexpr int CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26;
inline constexpr int CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12;
inline constexpr int CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18;
inline constexpr int CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25;
inline constexpr int CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8;
inline constexpr uint32_t CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_GELU_AUX = 160,
                          CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164, CUBLASLT_EPILOGUE_DGELU = 192,
                          CUBLASLT_EPILOGUE_BGRADB = 512;
}  // namespace cublas

// hipblaslt.h, hipblas-common.h and library_types.h of ROCm 6 and 7.
namespace hipblas {
inline constexpr int k_algorithm_words = 3;  // of hipblasLtMatmulAlgo_t, uint64_t
inline constexpr int HIP_R_32F = 0, HIP_R_16F = 2, HIP_R_16BF = 14, HIP_R_8F_E4M3 = 28, HIP_R_8F_E5M2 = 29,
                     HIP_R_8F_E4M3_FNUZ = 1000, HIP_R_8F_E5M2_FNUZ = 1001;
inline constexpr int HIPBLAS_OP_N = 111, HIPBLAS_OP_T = 112;
inline constexpr int HIPBLAS_COMPUTE_32F = 2, HIPBLAS_COMPUTE_32F_FAST_TF32 = 6;
inline constexpr int HIPBLASLT_MATMUL_DESC_TRANSA = 0, HIPBLASLT_MATMUL_DESC_TRANSB = 1;
inline constexpr int HIPBLASLT_MATMUL_DESC_EPILOGUE = 2;
inline constexpr int HIPBLASLT_MATMUL_DESC_BIAS_POINTER = 3, HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 4;
inline constexpr int HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 10, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 11;
inline constexpr int HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER = 5, HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER = 6;
inline constexpr int HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1;
inline constexpr uint32_t HIPBLASLT_EPILOGUE_DEFAULT = 1, HIPBLASLT_EPILOGUE_BIAS = 4,
                          HIPBLASLT_EPILOGUE_GELU_AUX = 160, HIPBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
                          HIPBLASLT_EPILOGUE_DGELU = 192, HIPBLASLT_EPILOGUE_BGRADB = 512;
}  // namespace hipblas

}  // namespace tprimat::engine::gpu::blas

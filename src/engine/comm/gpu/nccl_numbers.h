#pragma once

// The numbers of nccl.h and rccl.h, under the names that they have there (ncclDataType_t, ncclRedOp_t, ncclResult_t).
// tests/vendor_headers holds them against the header that is installed.
namespace tprimat::engine::gpu::nccl::vendor {

inline constexpr int ncclInt8 = 0, ncclInt32 = 2, ncclInt64 = 4, ncclFloat16 = 6, ncclFloat32 = 7, ncclFloat64 = 8,
                     ncclBfloat16 = 9;
inline constexpr int ncclSum = 0, ncclMax = 2;
inline constexpr int ncclInProgress = 7;
inline constexpr int k_unique_id_bytes = 128;  // NCCL_UNIQUE_ID_BYTES

}  // namespace tprimat::engine::gpu::nccl::vendor

#if __has_include(<nccl.h>)
#include <nccl.h>
#else
#define __HIP_PLATFORM_AMD__ 1
#include <rccl/rccl.h>
#endif

#include "comm/gpu/nccl_numbers.h"

namespace ours = tprimat::engine::gpu::nccl::vendor;
#define EXPECT_SAME(name) static_assert(ours::name == static_cast<int>(::name))

EXPECT_SAME(ncclInt8);
EXPECT_SAME(ncclInt32);
EXPECT_SAME(ncclInt64);
EXPECT_SAME(ncclFloat16);
EXPECT_SAME(ncclFloat32);
EXPECT_SAME(ncclFloat64);
EXPECT_SAME(ncclBfloat16);
EXPECT_SAME(ncclSum);
EXPECT_SAME(ncclMax);
EXPECT_SAME(ncclInProgress);
static_assert(ours::k_unique_id_bytes == NCCL_UNIQUE_ID_BYTES);

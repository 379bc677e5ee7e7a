#pragma once

// The instructions of AVX512-BF16, for functions marked TPRIMAT_AVX512_BF16 only: the rest of the program runs on any
// CPU, and has_bf16_pairs() (bf16_panels.h) says whether these may be called.
#if defined(__x86_64__)
#define TPRIMAT_HAS_AVX512_BF16 1
#define TPRIMAT_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))
// For what runs between the instructions of tiles, where a call costs as much as the work.
#define TPRIMAT_INLINE_AVX512_BF16 __attribute__((always_inline)) TPRIMAT_AVX512_BF16

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // GCC 12 warns about its own _mm512_undefined (bug 105593)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#define TPRIMAT_HAS_AVX512_BF16 0
#endif

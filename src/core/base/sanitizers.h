#pragma once

// TPRIMAT_ADDRESS_SANITIZER: 1 in a build with the address sanitizer, else 0. GCC defines a macro, clang has
// __has_feature.
#if defined(__SANITIZE_ADDRESS__)
#define TPRIMAT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TPRIMAT_ADDRESS_SANITIZER 1
#endif
#endif
#if !defined(TPRIMAT_ADDRESS_SANITIZER)
#define TPRIMAT_ADDRESS_SANITIZER 0
#endif

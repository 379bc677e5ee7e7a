#pragma once

#include <cstdio>
#include <cstdlib>

// For what only a bug of ours can break; stays on in every build. What a user or a machine can do wrong throws
// Error instead.
#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                      \
    }                                                                                                    \
  } while (false)

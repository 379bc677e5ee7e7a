#pragma once

#include <cstdio>
#include <cstdlib>

// For conditions that only a bug can break; active in every build. Faults of the user or the machine throw Error
// instead.
#define CHECK(condition)                                                                                 \
  do {                                                                                                   \
    if (!(condition)) {                                                                                  \
      std::fprintf(stderr, "%s:%d: internal error: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                                      \
    }                                                                                                    \
  } while (false)

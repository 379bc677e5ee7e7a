#pragma once

#include <gtest/gtest.h>

#include <filesystem>

// Some tests read logs and results of others, which are not part of the project. Where that data set does not lie
// beside the project they are skipped, and say what is missing and where it belongs. Use in a test or in SetUp().
#define SKIP_WITHOUT_EXAMPLE_DATA(place)                                                            \
  do {                                                                                              \
    if (!std::filesystem::exists(place))                                                            \
      GTEST_SKIP() << std::filesystem::path(place).string() << " is missing: it is of the example " \
                   << "data set, whose folder belongs at " << TPRIMAT_SHARED_DATA;                  \
  } while (false)

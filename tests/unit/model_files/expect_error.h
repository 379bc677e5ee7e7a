#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace tprimat::test {

// What the action throws; empty where it throws nothing.
template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_ERROR_WITH(words, action)                                   \
  do {                                                                     \
    const std::string said = ::tprimat::test::error_of([&] { action; });   \
    EXPECT_NE(said.find(words), std::string::npos) << "it says: " << said; \
  } while (false)

}  // namespace tprimat::test

#include "why/ledger.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "why/make_ledger.h"

namespace tprimat::results {
namespace {

TEST(MakeLedger, RefusesASideWithoutATrace) { EXPECT_THROW(make_ledger({"A"}, {"B"}), Error); }

}  // namespace
}  // namespace tprimat::results

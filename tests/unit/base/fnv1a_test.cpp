#include "base/checksum.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(Fnv1a, IsThatOfItsAuthors) {  // http://www.isthe.com/chongo/tech/comp/fnv/, "Test FNV hash code"
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

}  // namespace
}  // namespace tprimat

#include "text/proto.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(Proto, TakesOneFieldAfterTheOther) {
  const std::string_view bytes("\x08\x96\x01\x12\x02hi\x1d\x01\x00\x00\x80\x21\x02\0\0\0\0\0\0\x40", 21);
  std::string_view rest = bytes;
  const auto number = take_proto_field(rest);
  ASSERT_TRUE(number);
  EXPECT_EQ(number->number, 1u);
  EXPECT_EQ(number->value, 150u);
  const auto text = take_proto_field(rest);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->number, 2u);
  EXPECT_EQ(text->bytes, "hi");
  const auto fixed32 = take_proto_field(rest);
  ASSERT_TRUE(fixed32);
  EXPECT_EQ(fixed32->value, 0x80000001u);
  const auto fixed64 = take_proto_field(rest);
  ASSERT_TRUE(fixed64);
  EXPECT_EQ(fixed64->value, 0x4000000000000002u);
  EXPECT_FALSE(take_proto_field(rest));
  EXPECT_TRUE(rest.empty());
}

TEST(Proto, StopsAtWhatIsNoField) {
  const std::string_view endless("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
  for (std::string_view bytes :
       {std::string_view("\x12\x05hi", 4), std::string_view("\x1d\x01", 2), std::string_view("\x00\x01", 2),
        std::string_view("\x0b\x0c", 2), std::string_view("\x08\x80", 2), endless})
    EXPECT_FALSE(take_proto_field(bytes)) << bytes;
}

}  // namespace
}  // namespace tprimat

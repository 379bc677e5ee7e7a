#include "trace/unpacked.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "trace/trace.h"
#include "trace_fixture.h"

namespace tprimat::logs {
namespace {

std::string refusal(std::string_view packed) {
  try {
    unpack(packed, "t.zst");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string long_text() {
  std::string text;
  for (int64_t i = 0; i < 100'000; ++i) text += std::to_string(i * i % 9973) + " ";
  return text;
}

TEST(Unpacked, GivesBackWhatWasPacked) {
  const std::string text = long_text();
  for (const std::string& packed : {gzip_bytes(text), zstd_bytes(text)}) {
    EXPECT_TRUE(is_packed(packed));
    EXPECT_EQ(unpack(packed, "t"), text);
    EXPECT_EQ(unpack(packed + packed, "t"), text + text);  // members, or frames, follow one another
  }
  EXPECT_EQ(unpack(zstd_bytes(""), "t"), "");
  EXPECT_FALSE(is_packed("plain"));
  EXPECT_EQ(make_unpacker("plain", "t"), nullptr);
}

TEST(Unpacked, RefusesDamagedDataWithThePlace) {
  const std::string gzip = gzip_bytes(long_text()), zstd = zstd_bytes(long_text());
  EXPECT_NE(refusal(gzip.substr(0, gzip.size() / 2)).find("the gzip data are truncated at byte"), std::string::npos);
  EXPECT_NE(refusal(zstd.substr(0, zstd.size() / 2)).find("the zstd data are truncated at byte"), std::string::npos);
  std::string damaged = zstd;
  for (size_t at = 100; at < damaged.size(); ++at) damaged[at] = '\xff';
  EXPECT_NE(refusal(damaged).find("the zstd data are damaged"), std::string::npos);
  EXPECT_NE(refusal(zstd + "more").find("the zstd data are damaged"), std::string::npos);
  EXPECT_NE(refusal(zstd_bytes(std::string(100 << 20, 'x'))).find("unpacks to more than 64 MiB"), std::string::npos);
}

TEST(Unpacked, ChromeTracesAreReadFromIt) {
  const std::string text = trace_of({trace_event("kernel", "gemm", 10.5, 2)});
  for (const std::string& packed : {gzip_bytes(text), zstd_bytes(text)}) {
    EXPECT_EQ(read_trace(packed, "t", TraceContent::gpu).events.size(), 1u);
    EXPECT_THROW(read_trace(packed.substr(0, packed.size() - 12), "t", TraceContent::gpu), Error);
  }
}

}  // namespace
}  // namespace tprimat::logs

#include "spec/pipeline_schedule.h"

#include <gtest/gtest.h>

namespace tprimat {
namespace {

TEST(SplitLayers, GivesEveryLayerOnceAndInOrder) {
  for (int64_t layers = 2; layers <= 40; ++layers)
    for (int64_t chunks = 1; chunks <= layers; ++chunks)
      for (const bool ends : {false, true}) {
        int64_t next = 0;
        for (int64_t place = 0; place < chunks; ++place) {
          const ChunkLayers each = split_layers(layers, chunks, ends, place);
          EXPECT_EQ(each.first, next);
          EXPECT_GE(each.count, 0);
          next += each.count;
        }
        EXPECT_EQ(next, layers) << layers << ' ' << chunks << ' ' << ends;
      }
}

// Meta gave the first and the last of 16 stages one layer less (arXiv 2407.21783, section 3.3.2).
TEST(SplitLayers, Llama405BFills128Places) {
  EXPECT_EQ(split_layers(126, 16, true, 0).count, 7);
  for (int64_t place = 1; place < 15; ++place) EXPECT_EQ(split_layers(126, 16, true, place).count, 8);
  EXPECT_EQ(split_layers(126, 16, true, 15).count, 7);
  EXPECT_EQ(split_layers(126, 128, true, 0).count, 0);
  EXPECT_EQ(split_layers(126, 1, true, 0).count, 126);
}

}  // namespace
}  // namespace tprimat

#include "memory/arena_plan.h"

#include <gtest/gtest.h>

#include <new>

namespace tprimat {
namespace {

TEST(ArenaPlanTest, ValuesHaveTheBytesOfThePrecision) {
  ArenaPlan plan({sizeof(uint16_t), sizeof(float)});
  plan.reserve<Element>(Component::weights, 64);
  plan.reserve<Sum>(Component::gradients, 64);
  plan.reserve<ShortElement>(Component::moments, 128);
  plan.reserve<double>(Component::batch, 1);
  EXPECT_EQ(plan.bytes_of(Component::weights), 128u);
  EXPECT_EQ(plan.bytes_of(Component::gradients), 256u);
  EXPECT_EQ(plan.bytes_of(Component::moments), 256u);
  EXPECT_EQ(plan.bytes_of(Component::batch), 128u);  // begins at cache lines
  EXPECT_EQ(plan.total_bytes(), 768u);
  EXPECT_EQ(plan.allocated_bytes(), size_t{2} << 20);
}

TEST(ArenaPlanTest, BuffersThatAreNeverUsedTogetherShareMemory) {
  ArenaPlan plan;
  plan.reserve<float>(Component::workspace, 32);
  const size_t mark = plan.mark();
  plan.reserve<float>(Component::activations, 96);
  plan.rewind(mark);
  EXPECT_EQ(plan.reserve<float>(Component::logits, 32).offset, mark);
  plan.seek_end();
  EXPECT_EQ(plan.reserve<float>(Component::workspace, 32).offset, 512u);
  EXPECT_EQ(plan.bytes_of(Component::activations), 384u);
  EXPECT_EQ(plan.bytes_of(Component::logits), 0u);
}

TEST(ArenaPlanTest, ReportsNameWhatIsThere) {
  ArenaPlan plan;
  plan.reserve<float>(Component::weights, 32);
  plan.reserve<float>(Component::gathered_weights, 64);
  plan.reserve<float>(Component::moments, 32);
  const std::map<std::string, size_t> named{{"weights", 384}, {"optimizer", 128}};
  EXPECT_EQ(plan.bytes_by_component(), named);
}

TEST(ArenaPlanTest, RefusesMoreThanAnyMachineHas) {
  ArenaPlan plan;
  EXPECT_THROW(plan.reserve<float>(Component::workspace, int64_t{1} << 59), std::bad_alloc);
}

}  // namespace
}  // namespace tprimat

#include <numeric>

#include "op_test.h"
#include "ops/reference/rope.h"
#include "ops/rope_table.h"

namespace tprimat::engine {
namespace {

using Kind = RopeScalingKind;

template <class A>
struct FilledTable {
  FilledTable(const RopeFrequencies& frequencies, const std::vector<int64_t>& positions)
      : cosine(positions.size() * static_cast<size_t>(frequencies.head_dim / 2)), sine(cosine.size()) {
    fill_rope_table<A>(frequencies, positions.data(), static_cast<int64_t>(positions.size()), view());
  }
  RopeTable<A> view() { return {cosine.data(), sine.data()}; }
  std::vector<A> cosine, sine;
};

std::vector<int64_t> positions_from(int64_t first, int64_t count) {
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::iota(positions.begin(), positions.end(), first);
  return positions;
}

template <class T>
class FastRope : public FastOp<T> {};
TYPED_TEST_SUITE(FastRope, FastTypes);

TYPED_TEST(FastRope, MatchesReferenceAndTurnsBack) {
  using T = TypeParam;
  for_each_target([] {
    for (const int64_t head_dim : {2, 10, 64, 128}) {
      const RopeShape shape{2, 9, 3, head_dim, 5 * head_dim};
      FilledTable<double> table({head_dim, 1e4, {}}, positions_from(0, 9));
      FilledTable<float> table_f({head_dim, 1e4, {}}, positions_from(0, 9));
      const auto start = rounded<T>(random_values(2 * 9 * 5 * head_dim, 5));
      auto rotated = start;
      reference::rope_in_place<double>(shape, table.view(), +1, rotated.data());
      auto rotated_t = narrowed<T>(start);
      ops<T>().rope_in_place(shape, table_f.view(), +1, rotated_t.data());
      expect_close(widened(rotated_t), rotated, tolerance_of<T>());
      ops<T>().rope_in_place(shape, table_f.view(), -1, rotated_t.data());
      expect_close(widened(rotated_t), start, tolerance_of<T>());
    }
  });
}

TEST(RopeTableTest, RowsFollowThePositions) {
  const RopeFrequencies frequencies{8, 100.0, {}};
  const FilledTable<double> table(frequencies, {7, 0, 1000});
  for (size_t i = 0; i < 4; ++i) {
    const double radians = std::pow(100.0, -2.0 * static_cast<double>(i) / 8.0);
    EXPECT_NEAR(table.cosine[i], std::cos(7 * radians), 1e-12);
    EXPECT_NEAR(table.sine[i], std::sin(7 * radians), 1e-12);
    EXPECT_EQ(table.cosine[4 + i], 1.0);
    EXPECT_EQ(table.sine[4 + i], 0.0);
    EXPECT_NEAR(table.sine[8 + i], std::sin(1000 * radians), 1e-12);
  }
}

struct StretchCase {
  const char* name;
  RopeFrequencies frequencies;
  std::vector<double> radians;
  double amplitude;
};

// Inverse frequencies and attention factors that Hugging Face Transformers 5.23 computes, in float.
const StretchCase k_stretches[] = {
    {"linear",
     {8, 1e4, RopeScaling{.type = Kind::linear, .factor = 4.0}},
     {0.25, 0.0250000004, 0.00249999994, 0.000250000012},
     1.0},
    {"llama3",
     {16, 5e5, RopeScaling{.type = Kind::llama3, .factor = 8.0, .original_max_position_embeddings = 8192}},
     {1.0, 0.193922758, 0.0376060307, 0.00729266508, 0.000524846022, 3.42810235e-05, 6.64786967e-06, 1.28917316e-06},
     1.0},
    {"llama3, factor 32",
     {16, 1e4, RopeScaling{.type = Kind::llama3, .factor = 32.0, .original_max_position_embeddings = 64}},
     {1.0, 0.236687109, 0.00372535503, 0.000988211832, 0.000312499993, 9.88211832e-05, 3.12500015e-05, 9.88211832e-06},
     1.0},
    {"yarn",
     {16, 1e4, RopeScaling{.type = Kind::yarn, .factor = 4.0, .original_max_position_embeddings = 64}},
     {1.0, 0.237170815, 0.049999997, 0.00790569466, 0.00249999994, 0.000790569466, 0.000250000012, 7.90569466e-05},
     1.138629436111989},
    {"yarn of Qwen 2.5",
     {32, 1e6, RopeScaling{.type = Kind::yarn, .factor = 4.0, .original_max_position_embeddings = 32768}},
     {1.0, 0.421696514, 0.177827939, 0.0749894157, 0.0316227786, 0.0133352149, 0.00477990136, 0.00165996165,
      0.000549999997, 0.000168678584, 4.44569851e-05, 1.87473561e-05, 7.90569356e-06, 3.33380353e-06, 1.40585337e-06,
      5.92843435e-07},
     1.138629436111989},
};

TEST(RopeTableTest, StretchesAsTransformersDoes) {
  for (const auto& [name, frequencies, expected, amplitude] : k_stretches) {
    SCOPED_TRACE(name);
    const std::vector<double> radians = frequencies.radians_per_token();
    ASSERT_EQ(radians.size(), expected.size());
    for (size_t i = 0; i < radians.size(); ++i) EXPECT_NEAR(radians[i] / expected[i], 1.0, 1e-6) << i;
    EXPECT_DOUBLE_EQ(frequencies.amplitude(), amplitude);
    const FilledTable<double> table(frequencies, {3});
    EXPECT_NEAR(table.cosine[1], amplitude * std::cos(3 * radians[1]), 1e-12);
    EXPECT_NEAR(table.sine[1], amplitude * std::sin(3 * radians[1]), 1e-12);
  }
}

TEST(GradientTest, Rope) {
  const RopeShape shape{1, 4, 2, 6, 12};
  FilledTable<double> table(
      {6, 100.0, RopeScaling{.type = Kind::yarn, .factor = 2.0, .original_max_position_embeddings = 64}},
      positions_from(3, 4));
  auto x = random_values(48, 1);
  const auto dy = random_values(48, 2);
  auto dx = dy;
  ops<double>().rope_in_place(shape, table.view(), -1, dx.data());
  expect_gradient(x, dx, [&] {
    auto y = x;
    ops<double>().rope_in_place(shape, table.view(), +1, y.data());
    return dot(y, dy);
  });
}

}  // namespace
}  // namespace tprimat::engine

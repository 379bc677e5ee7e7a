#include "ops/reference/attention.h"
#include "op_test.h"

namespace tprimat {
namespace {

struct AttentionCase {
  const char* name;
  AttentionShape shape;
};

// Batch, sequence, query heads, key/value heads, head size, window.
const AttentionCase k_cases[] = {
    {"one token", {1, 1, 1, 1, 16, 0}},
    {"one tile", {1, 64, 2, 2, 64, 0}},
    {"tail of a tile", {2, 71, 4, 2, 64, 0}},
    {"many tiles", {1, 200, 2, 1, 32, 0}},
    {"odd head size", {1, 67, 2, 2, 20, 0}},
    {"head of 128", {1, 65, 1, 1, 128, 0}},
    {"window inside a tile", {1, 150, 2, 1, 16, 10}},
    {"window over tiles", {1, 200, 1, 1, 16, 100}},
};

template <class T>
class FastAttention : public FastOp<T> {};
TYPED_TEST_SUITE(FastAttention, FastTypes);

TYPED_TEST(FastAttention, MatchesReference) {
  using T = TypeParam;
  for_each_target([] {
    for (const auto& [name, shape] : k_cases) {
      SCOPED_TRACE(name);
      const int64_t tokens = shape.batch * shape.sequence, out = tokens * shape.heads * shape.head_dim;
      const auto qkv = rounded<T>(random_values(tokens * shape.row_width(), 1, 1.5)),
                 dy = rounded<T>(random_values(out, 2));
      std::vector<double> y(static_cast<size_t>(out)), lse(static_cast<size_t>(tokens * shape.heads)), dqkv(qkv.size());
      reference::attention_forward(shape, qkv.data(), y.data(), lse.data());
      reference::attention_backward<double>(shape, {qkv.data(), y.data(), lse.data(), dy.data(), dqkv.data()});

      const auto qkv_t = narrowed<T>(qkv), dy_t = narrowed<T>(dy);
      std::vector<T> y_t(y.size()), dqkv_t(qkv.size());
      std::vector<float> lse_t(lse.size());
      attention_forward<T>(shape, qkv_t.data(), y_t.data(), lse_t.data());
      attention_backward<T>(shape, {qkv_t.data(), y_t.data(), lse_t.data(), dy_t.data(), dqkv_t.data()});
      expect_close(widened(y_t), y, tolerance_of<T>());
      expect_close(widened(lse_t), lse, 3e-6);
      expect_close(widened(dqkv_t), dqkv, tolerance_of<T>());
    }
  });
}

TEST(GradientTest, Attention) {
  for (const int64_t window : {0, 3}) {
    const AttentionShape shape{2, 6, 4, 2, 4, window};
    const int64_t out = 2 * 6 * 4 * 4;
    auto qkv = random_values(2 * 6 * shape.row_width(), 1);
    const auto dy = random_values(out, 2);
    std::vector<double> y(static_cast<size_t>(out)), lse(2 * 6 * 4), dqkv(qkv.size());
    const auto loss = [&] {
      attention_forward<double>(shape, qkv.data(), y.data(), lse.data());
      return dot(y, dy);
    };
    loss();
    attention_backward<double>(shape, {qkv.data(), y.data(), lse.data(), dy.data(), dqkv.data()});
    expect_gradient(qkv, dqkv, loss);
  }
}

}  // namespace
}  // namespace tprimat

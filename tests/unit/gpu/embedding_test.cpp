#include "ops/reference/embedding.h"

#include "device/gpu/runtime.h"
#include "ops/gpu/gpu_ops.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

template <class T>
class GpuEmbedding : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuEmbedding, GpuTypes);

struct EmbeddingCase {
  EmbeddingShape shape;
  int32_t first, last;  // tokens drawn
};
// Few tokens, so that each has many rows, and many; whole packs and not; more rows than one tile sorts; digits above
// the lowest.
const std::vector<EmbeddingCase> k_embedding_cases = {{{0, 8}, 0, 3},         {{1, 1}, 0, 0},      {{5, 7}, 0, 9},
                                                      {{70, 64}, -1, 2},      {{1500, 24}, 0, 40}, {{300, 2100}, -2, 5},
                                                      {{600, 33}, 0, 70'000}, {{9000, 5}, 0, 300}};

TYPED_TEST(GpuEmbedding, ForwardTakesRows) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const EmbeddingCase& c : k_embedding_cases) {
    SCOPED_TRACE(c.shape.cols);
    const auto tokens = draws.integers(c.shape.rows, c.first, c.last);
    const auto table = draws.of<T>((c.last + 1) * c.shape.cols);
    std::vector<double> y(static_cast<size_t>(c.shape.rows * c.shape.cols));
    reference::embedding_forward<double>(c.shape, tokens.data(), table.data(), y.data());
    const DeviceVector<int32_t> numbers(tokens);
    const auto rows = on_device<T>(table);
    auto to = DeviceVector<T>::poisoned(c.shape.rows * c.shape.cols);
    gpu_ops<T>().embedding_forward(c.shape, numbers.data(), rows.data(), to.data());
    EXPECT_EQ(widened(to.download()), y);
  }
}

TYPED_TEST(GpuEmbedding, BackwardMatchesTheReferenceAndRepeats) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  for (const EmbeddingCase& c : k_embedding_cases) {
    SCOPED_TRACE(c.shape.cols);
    const auto tokens = draws.integers(c.shape.rows, c.first, c.last);
    const auto dy = draws.of<T>(c.shape.rows * c.shape.cols);
    const auto before = draws.of<float>((c.last + 1) * c.shape.cols);
    auto expected = before;
    reference::embedding_backward<double>(c.shape, tokens.data(), dy.data(), expected.data());
    const DeviceVector<int32_t> numbers(tokens);
    const auto gradient = on_device<T>(dy);
    const auto table = on_device<float>(before), again = on_device<float>(before);
    gpu_ops<T>().embedding_backward(c.shape, numbers.data(), gradient.data(), table.data());
    gpu_ops<T>().embedding_backward(c.shape, numbers.data(), gradient.data(), again.data());
    expect_each_close(table, expected);
    expect_same_bits(table, again);
  }
}

struct VocabularyCase {
  int64_t vocab, passes;  // of the sort, over eight bits each
};

// The number behind the last token, by which rows without one are sorted, has one bit more where the vocabulary is a
// power of two.
TYPED_TEST(GpuEmbedding, BackwardSortsTheBitsOfItsVocabulary) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  constexpr int64_t k_rows = 1100, k_cols = 8;
  for (const VocabularyCase& c : std::vector<VocabularyCase>{
           {1, 1}, {2, 1}, {255, 1}, {256, 2}, {257, 2}, {50'257, 2}, {65'535, 2}, {65'536, 3}, {65'537, 3}, {0, 4}}) {
    SCOPED_TRACE(c.vocab);
    const int64_t table_rows = c.vocab == 0 ? 300 : c.vocab;
    const auto last = static_cast<int32_t>(table_rows - 1);
    auto tokens = draws.integers(k_rows, -1, last);
    tokens[0] = last, tokens[1] = 0, tokens[2] = -1, tokens[k_rows - 1] = last;
    const auto dy = draws.of<T>(k_rows * k_cols);
    const auto before = draws.of<float>(table_rows * k_cols);
    auto expected = before;
    const EmbeddingShape shape{k_rows, k_cols, c.vocab};
    reference::embedding_backward<double>(shape, tokens.data(), dy.data(), expected.data());
    const DeviceVector<int32_t> numbers(tokens);
    const auto gradient = on_device<T>(dy);
    const auto table = on_device<float>(before);
#if defined(TPRIMAT_GPU_HOST)
    const int64_t grids = host::grids_run();
#endif
    gpu_ops<T>().embedding_backward(shape, numbers.data(), gradient.data(), table.data());
#if defined(TPRIMAT_GPU_HOST)
    EXPECT_EQ(host::grids_run() - grids, 1 + 3 * c.passes + 1);
#endif
    expect_each_close(table, expected);
  }
}

// A token that every row has, and rows that no token has.
TYPED_TEST(GpuEmbedding, BackwardOfOneTokenAndOfNone) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  const EmbeddingShape shape{700, 264};
  const auto dy = draws.of<T>(700 * 264);
  for (const int32_t token : {0, 1, -1}) {
    const DeviceVector<int32_t> numbers(std::vector<int32_t>(700, token));
    std::vector<double> expected(2 * 264);
    const std::vector<int32_t> tokens(700, token);
    reference::embedding_backward<double>(shape, tokens.data(), dy.data(), expected.data());
    const auto gradient = on_device<T>(dy);
    const auto sums = on_device<float>(std::vector<double>(2 * 264));
    gpu_ops<T>().embedding_backward(shape, numbers.data(), gradient.data(), sums.data());
    expect_each_close(sums, expected, 2.0);
  }
}

}  // namespace
}  // namespace tprimat::engine::gpu

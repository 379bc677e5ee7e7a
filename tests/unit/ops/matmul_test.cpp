#include "ops/reference/matmul.h"
#include "op_test.h"

namespace tprimat {
namespace {

struct MatmulCase {
  int64_t m, n, k;
};
const MatmulCase k_cases[] = {{1, 1, 1}, {3, 5, 7}, {64, 48, 32}, {17, 130, 65}, {128, 96, 256}};

// a·b with a and b stored plain or transposed, as forward and both gradients need them.
template <class T, class C>
void compare_with_reference(const MatmulCase& c, std::pair<bool, bool> turned, bool accumulate) {
  const auto a = rounded<T>(random_values(c.m * c.k, 1)), b = rounded<T>(random_values(c.k * c.n, 2));
  const auto start = rounded<C>(random_values(c.m * c.n, 3));
  const auto view = [](const auto* data, int64_t rows, int64_t cols, bool turn) {
    return turn ? transposed(matrix(data, cols, rows)) : matrix(data, rows, cols);
  };
  auto expected = start;
  reference::matmul<double, double>(view(a.data(), c.m, c.k, turned.first), view(b.data(), c.k, c.n, turned.second),
                                    matrix(expected.data(), c.m, c.n), accumulate);
  const auto a_t = narrowed<T>(a), b_t = narrowed<T>(b);
  auto result = narrowed<C>(start);
  matmul<T, C>(view(a_t.data(), c.m, c.k, turned.first), view(b_t.data(), c.k, c.n, turned.second),
               matrix(result.data(), c.m, c.n), accumulate);
  expect_close(widened(result), expected, tolerance_of<C>());
}

TEST(MatmulTest, MatchesReference) {
  for (const MatmulCase& c : k_cases) {
    for (const bool turn_a : {false, true}) {
      for (const bool turn_b : {false, true}) {
        for (const bool accumulate : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << c.m << "×" << c.n << "×" << c.k << (turn_a ? " aT" : "") << (turn_b ? " bT" : ""));
          compare_with_reference<float, float>(c, {turn_a, turn_b}, accumulate);
          compare_with_reference<bf16, float>(c, {turn_a, turn_b}, accumulate);
          compare_with_reference<bf16, bf16>(c, {turn_a, turn_b}, accumulate);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tprimat

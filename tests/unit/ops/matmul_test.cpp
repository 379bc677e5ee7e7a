#include "ops/reference/matmul.h"
#include "device/parallel.h"
#include "op_test.h"
#include "ops/cpu/float_product.h"

namespace tprimat::engine {
namespace {

struct MatmulCase {
  int64_t m, n, k;
};
// Elements of a sum that the product of floats visits at a time where there are many columns; of about 4096 lines at
// most.
constexpr int64_t k_share = 512;
const MatmulCase k_matmul_cases[] = {
    {1, 1, 1},     {3, 5, 7},    {3, 5, 0},     {64, 48, 32},   {64, 48, 512},  // rows 1 KB apart
    {64, 130, 96}, {9, 7, 4101}, {17, 130, 65}, {128, 96, 256}, {100, 200, 31},     {9, 49, 4101},
    {50, 7, 2049}, {0, 4, 3},    {4, 0, 3},     {385, 259, 5},  {1, 4105, k_share}, {4105, 1, k_share}};

struct Variant {
  bool turn_a, turn_b, accumulate;
  int64_t gap;  // elements between the rows of each matrix
};

// A matrix stored plain or transposed, with gaps.
template <class V>
MatrixView<V> view_of(V* data, int64_t rows, int64_t cols, bool turn, int64_t gap) {
  const MatrixView<V> stored =
      turn ? MatrixView<V>{data, cols, rows, rows + gap, 1} : MatrixView<V>{data, rows, cols, cols + gap, 1};
  return turn ? transposed(stored) : stored;
}
int64_t elements_of(int64_t rows, int64_t cols, int64_t gap) { return rows * cols + gap * std::max(rows, cols); }

// Of numbers of type T, whose result is of type C.
template <class T, class C>
auto product() {
  if constexpr (std::is_same_v<T, C>)
    return cpu_ops<T>().matmul;
  else
    return cpu_ops<T>().matmul_wide;
}

// a·b as forward and both gradients need them.
template <class T, class C>
void compare_with_reference(const MatmulCase& c, const Variant& v) {
  const auto a = rounded<T>(random_values(elements_of(c.m, c.k, v.gap), 1));
  const auto b = rounded<T>(random_values(elements_of(c.k, c.n, v.gap), 2));
  const auto start = rounded<C>(random_values(elements_of(c.m, c.n, v.gap), 3));
  auto expected = start;
  reference::matmul<double, double>(view_of(a.data(), c.m, c.k, v.turn_a, v.gap),
                                    view_of(b.data(), c.k, c.n, v.turn_b, v.gap),
                                    view_of(expected.data(), c.m, c.n, false, v.gap), v.accumulate);
  const auto a_t = narrowed<T>(a), b_t = narrowed<T>(b);
  auto result = narrowed<C>(start);
  product<T, C>()(view_of(a_t.data(), c.m, c.k, v.turn_a, v.gap), view_of(b_t.data(), c.k, c.n, v.turn_b, v.gap),
                  view_of(result.data(), c.m, c.n, false, v.gap), v.accumulate);
  expect_close(widened(result), expected, tolerance_of<C>());
}

TEST(MatmulTest, MatchesReference) {
  for (const MatmulCase& c : k_matmul_cases) {
    const bool small = c.m * c.n * c.k < 1000;
    for (int bits = 0; bits < (small ? 16 : 8); ++bits) {
      const Variant v{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0 ? 3 : 0};
      SCOPED_TRACE(testing::Message() << c.m << "×" << c.n << "×" << c.k << (v.turn_a ? " aT" : "")
                                      << (v.turn_b ? " bT" : "") << " gap " << v.gap);
      compare_with_reference<float, float>(c, v);
      if (std::max(c.m, c.n) > 4096) continue;  // of interest to the product of floats only
      compare_with_reference<bf16, float>(c, v);
      compare_with_reference<bf16, bf16>(c, v);
      compare_with_reference<f16, float>(c, v);
      compare_with_reference<f16, f16>(c, v);
    }
  }
}

// Rows of the result that lie far apart.
template <class C>
void compare_far_rows(const MatmulCase& c, bool accumulate) {
  constexpr int64_t k_stride = 9000;
  const auto a = rounded<bf16>(random_values(c.m * c.k, 1)), b = rounded<bf16>(random_values(c.k * c.n, 2));
  const auto start = rounded<C>(random_values(c.m * k_stride, 3));
  auto expected = start;
  const auto result_view = [&]<class V>(V* data) { return MatrixView<V>{data, c.m, c.n, k_stride, 1}; };
  reference::matmul<double, double>(matrix(a.data(), c.m, c.k), matrix(b.data(), c.k, c.n),
                                    result_view(expected.data()), accumulate);
  const auto a_t = narrowed<bf16>(a), b_t = narrowed<bf16>(b);
  auto result = narrowed<C>(start);
  const auto left = matrix(a_t.data(), c.m, c.k), right = matrix(b_t.data(), c.k, c.n);
  product<bf16, C>()(left, right, result_view(result.data()), accumulate);
  expect_close(widened(result), expected, tolerance_of<C>());
}

TEST(MatmulTest, RowsOfTheResultFarApart) {
  compare_far_rows<bf16>({140, 130, 4096}, false);  // rows of the left side are packed
  compare_far_rows<bf16>({160, 130, 4000}, false);  // they stay as they lie
  compare_far_rows<float>({416, 400, 992}, true);
  compare_far_rows<float>({70, 60, 2080}, true);    // several shares
  compare_far_rows<float>({200, 195, 2040}, true);  // row by row, columns in two groups
  compare_far_rows<bf16>({544, 520, 544}, false);   // many rows as they lie, and columns in blocks
  compare_far_rows<float>({544, 520, 64}, true);
  compare_far_rows<bf16>({64, 130, 4000}, false);  // rows as they lie, one panel after the other
  compare_far_rows<float>({64, 130, 2080}, true);
  set_thread_count(1);
  compare_far_rows<bf16>({416, 392, 3104}, false);  // a thread's columns are one block, by shares of 1024
  set_thread_count(0);
}

// So few columns that they stay in a thread's cache, and more rows than the product of floats takes at a time.
TEST(MatmulTest, ManyRowsAndFewColumns) {
  for (const int64_t threads : {1, 2}) {
    set_thread_count(threads);
    for (const bool turn_a : {false, true})
      compare_with_reference<float, float>({4150, 33, 300}, {turn_a, true, true, 3});
  }
  set_thread_count(0);
}

// More lines than the product of floats packs at a time, on both sides: every part of the result with more than 1024
// columns has the bits of the same part computed alone.
TEST(MatmulTest, PartsOfALargeProductHaveItsBits) {
  constexpr int64_t k_lines = 4200, k_part = 1400, k_length = 2 * k_share;
  if (float_product_instructions().empty())
    GTEST_SKIP()
        << "needs a CPU with fused multiply-add, for which the product is our own: run it on one with AVX2 or NEON";
  const auto a = narrowed<float>(random_values(k_length * k_lines, 1));
  const auto b = narrowed<float>(random_values(k_length * k_lines, 2));
  const auto rows = [&](int64_t first, int64_t count) {  // side by side, so that they are packed
    return transposed(MatrixView<const float>{a.data() + first, k_length, count, k_lines, 1});
  };
  const auto columns = [&](int64_t first, int64_t count) {
    return MatrixView<const float>{b.data() + first, k_length, count, k_lines, 1};
  };
  std::vector<float> whole(static_cast<size_t>(k_lines * k_lines)), part(static_cast<size_t>(k_part * k_part));
  cpu_ops<float>().matmul(rows(0, k_lines), columns(0, k_lines), matrix(whole.data(), k_lines, k_lines), false);
  for (int64_t row = 0; row < k_lines; row += k_part)
    for (int64_t col = 0; col < k_lines; col += k_part) {
      cpu_ops<float>().matmul(rows(row, k_part), columns(col, k_part), matrix(part.data(), k_part, k_part), false);
      for (int64_t r = 0; r < k_part; ++r)
        ASSERT_TRUE(std::equal(part.begin() + r * k_part, part.begin() + (r + 1) * k_part,
                               whole.begin() + (row + r) * k_lines + col))
            << "row " << row + r << ", columns from " << col;
    }
}

template <class T>
void compare_thread_counts(const MatmulCase& c, bool turn_a) {
  const auto a = narrowed<T>(random_values(c.m * c.k, 1)), b = narrowed<T>(random_values(c.k * c.n, 2));
  const MatrixView<const T> left = view_of(a.data(), c.m, c.k, turn_a, 0), right = matrix(b.data(), c.k, c.n);
  std::vector<std::vector<float>> results;
  for (const int64_t threads : {1, 2, 5}) {
    set_thread_count(threads);
    std::vector<float> sums(static_cast<size_t>(c.m * c.n), 1.0f);
    product<T, float>()(left, right, matrix(sums.data(), c.m, c.n), true);
    results.push_back(sums);
  }
  set_thread_count(0);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(MatmulTest, ThreadsDoNotChangeTheResult) {
  for (const MatmulCase& c : {MatmulCase{544, 520, 544}, {200, 195, 2040}, {64, 130, 2080}}) {
    compare_thread_counts<bf16>(c, false);
    if (float_product_instructions().empty()) continue;  // oneDNN multiplies floats
    compare_thread_counts<float>(c, false);
    compare_thread_counts<float>(c, true);  // whose rows are packed with all instruction sets
  }
}

TEST(MatmulTest, SquaresAreThoseOfTheResult) {
  if (cpu_ops<bf16>().matmul_wide_squares == nullptr)
    GTEST_SKIP()
        << "needs a CPU with AMX, whose products find the squares of their results: run it on an Intel Xeon of the "
           "fourth generation or later";
  for (const MatmulCase& c : {MatmulCase{70, 50, 100}, {200, 195, 2040}, {64, 130, 2080}, {3, 5, 7}, {544, 520, 544}})
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.m << "×" << c.n << "×" << c.k << (accumulate ? ", added" : ""));
      const auto a = narrowed<bf16>(random_values(c.m * c.k, 1)), b = narrowed<bf16>(random_values(c.k * c.n, 2));
      std::vector<float> plain(static_cast<size_t>(c.m * c.n), 1.0f), result = plain;
      const auto left = matrix(a.data(), c.m, c.k), right = matrix(b.data(), c.k, c.n);
      cpu_ops<bf16>().matmul_wide(left, right, matrix(plain.data(), c.m, c.n), accumulate);
      const double squares =
          cpu_ops<bf16>().matmul_wide_squares(left, right, matrix(result.data(), c.m, c.n), accumulate);
      EXPECT_EQ(result, plain);
      double expected = 0;
      for (const float value : plain) expected += static_cast<double>(value) * value;
      EXPECT_NEAR(squares, expected, 1e-6 * expected);
    }
}

TEST(GradientTest, Matmul) {
  auto a = random_values(3 * 4, 1), b = random_values(4 * 5, 2);
  const auto dy = random_values(3 * 5, 3);
  std::vector<double> y(15), da(12), db(20);
  const auto a_view = matrix(static_cast<const double*>(a.data()), 3, 4),
             b_view = matrix(static_cast<const double*>(b.data()), 4, 5);
  const auto dy_view = matrix(dy.data(), 3, 5);
  cpu_ops<double>().matmul(dy_view, transposed(b_view), matrix(da.data(), 3, 4), false);
  cpu_ops<double>().matmul(transposed(a_view), dy_view, matrix(db.data(), 4, 5), false);
  const auto loss = [&] {
    cpu_ops<double>().matmul(a_view, b_view, matrix(y.data(), 3, 5), false);
    return dot(y, dy);
  };
  expect_gradient(a, da, loss);
  expect_gradient(b, db, loss);
}

}  // namespace
}  // namespace tprimat::engine

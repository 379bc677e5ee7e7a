#include "ops/reference/matmul.h"

#include <algorithm>
#include <limits>

#include "op_test.h"
#include "ops/op_table.h"

namespace tprimat::engine {
namespace {

template <class T>
MatrixView<const T> as_input(const std::vector<T>& values, int64_t rows, int64_t cols) {
  return matrix(values.data(), rows, cols);
}

constexpr int64_t k_rows = 19, k_outputs = 24, k_inputs = 13;

template <class T>
class FusedMatmul : public FastOp<T> {};
TYPED_TEST_SUITE(FusedMatmul, FastTypes);

// x·Wᵀ with each of the epilogues of a GPT's layers.
TYPED_TEST(FusedMatmul, MatchesReference) {
  using T = TypeParam;
  const auto x = rounded<T>(random_values(k_rows * k_inputs, 1)),
             w = rounded<T>(random_values(k_outputs * k_inputs, 2)), bias = rounded<T>(random_values(k_outputs, 3)),
             input = rounded<T>(random_values(k_rows * k_outputs, 4));
  const auto x_t = narrowed<T>(x), w_t = narrowed<T>(w), bias_t = narrowed<T>(bias), input_t = narrowed<T>(input);
  for (int kind = 0; kind < 5; ++kind) {
    SCOPED_TRACE(kind);
    std::vector<double> y(k_rows * k_outputs), kept = input;
    std::vector<T> y_t(y.size()), kept_t = input_t;
    Epilogue<double> expected;
    Epilogue<T> fused;
    if (kind == 1 || kind == 2) expected.bias = bias.data(), fused.bias = bias_t.data();
    if (kind == 2 || kind == 3) expected.before_gelu = kept.data(), fused.before_gelu = kept_t.data();
    if (kind == 4) expected.gelu_input = input.data(), fused.gelu_input = input_t.data();
    reference::matmul_fused<double>(as_input(x, k_rows, k_inputs), transposed(as_input(w, k_outputs, k_inputs)),
                                    expected, matrix(y.data(), k_rows, k_outputs));
    cpu_ops<T>().matmul_fused(as_input(x_t, k_rows, k_inputs), transposed(as_input(w_t, k_outputs, k_inputs)), fused,
                              matrix(y_t.data(), k_rows, k_outputs));
    expect_close(widened(y_t), y, 2 * tolerance_of<T>());
    expect_close(widened(kept_t), kept, tolerance_of<T>());
  }
}

// Where the weight's gradient is written, what was there does not matter; the bias's is added to all the same.
TYPED_TEST(FusedMatmul, MakesTheGradientsOfAWeightAndItsBias) {
  using T = TypeParam;
  const auto dy = rounded<T>(random_values(k_rows * k_outputs, 1)), x = rounded<T>(random_values(k_rows * k_inputs, 2));
  auto dw = rounded<float>(random_values(k_outputs * k_inputs, 3)), dbias = rounded<float>(random_values(k_outputs, 4));
  const auto dy_t = narrowed<T>(dy), x_t = narrowed<T>(x);
  auto dw_t = narrowed<float>(dw), dbias_t = narrowed<float>(dbias);
  for (const bool accumulate : {true, false}) {
    if (!accumulate) std::fill(dw_t.begin(), dw_t.end(), std::numeric_limits<float>::quiet_NaN());
    reference::matmul_with_row_sums<double>(transposed(as_input(dy, k_rows, k_outputs)), as_input(x, k_rows, k_inputs),
                                            matrix(dw.data(), k_outputs, k_inputs), accumulate, dbias.data());
    cpu_ops<T>().matmul_with_row_sums(transposed(as_input(dy_t, k_rows, k_outputs)), as_input(x_t, k_rows, k_inputs),
                                      matrix(dw_t.data(), k_outputs, k_inputs), accumulate, dbias_t.data());
    expect_close(widened(dw_t), dw, tolerance_of<float>());
    expect_close(widened(dbias_t), dbias, tolerance_of<float>());
  }
}

}  // namespace
}  // namespace tprimat::engine

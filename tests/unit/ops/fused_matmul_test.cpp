#include "ops/reference/matmul.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "device/parallel.h"
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

// Sizes of an MLP with its activation in the products around it.
struct MlpSizes {
  int64_t rows, hidden, width;
};

enum class Activation : uint8_t { gelu, swiglu };

// The epilogues of the forward and the backward product.
template <class T>
std::array<Epilogue<T>, 2> epilogues(Activation activation, const T* bias, T* kept, T* inner) {
  if (activation == Activation::swiglu) return {Epilogue<T>{.bias = bias, .swiglu = inner}, {.swiglu_input = kept}};
  return {Epilogue<T>{.bias = bias, .before_gelu = kept}, {.gelu_input = kept}};
}

// Numbers that begin on a cache line: only whole lines pass the caches by.
template <class N>
class AlignedNumbers {
 public:
  explicit AlignedNumbers(int64_t count) : memory_(static_cast<size_t>(count) + k_line / sizeof(N)), count_(count) {}
  N* data() {
    void* from = memory_.data();
    size_t space = memory_.size() * sizeof(N);
    return static_cast<N*>(std::align(k_line, static_cast<size_t>(count_) * sizeof(N), from, space));
  }
  std::vector<N> values() { return {data(), data() + count_}; }

 private:
  static constexpr size_t k_line = 64;
  std::vector<N> memory_;
  int64_t count_;
};

// Forward, then backward from what the forward product kept, in whatever order. In blocks, with the same bits.
template <class T>
void expect_activation_in_products(Activation activation, const MlpSizes& s, bool has_bias) {
  const bool is_gated = activation == Activation::swiglu;
  const int64_t outputs = is_gated ? 2 * s.width : s.width;
  const auto x = rounded<T>(random_values(s.rows * s.hidden, 1)), dy = rounded<T>(random_values(s.rows * s.hidden, 2)),
             bias = rounded<T>(random_values(outputs, 3));
  auto up = random_values(outputs * s.hidden, 4), down = random_values(s.hidden * s.width, 5);
  for (auto* const weights : {&up, &down})
    for (double& w : *weights) w /= std::sqrt(static_cast<double>(s.hidden));
  up = rounded<T>(up), down = rounded<T>(down);
  struct Keeping {
    bool in_blocks = false, slopes = false;
  };
  const auto run = [&]<class N>(const auto& matmul_fused, const Keeping& keeping, const std::vector<N>& x_n,
                                const std::vector<N>& dy_n, const std::vector<N>& bias_n, const std::vector<N>& up_n,
                                const std::vector<N>& down_n) {
    AlignedNumbers<N> kept(s.rows * outputs), inner(s.rows * s.width), dup(s.rows * outputs);
    auto [forward, backward] = epilogues(activation, has_bias ? bias_n.data() : nullptr, kept.data(), inner.data());
    forward.to_blocks = backward.to_blocks = keeping.in_blocks;
    forward.keeps_slopes = backward.keeps_slopes = keeping.slopes;
    matmul_fused(as_input(x_n, s.rows, s.hidden), transposed(as_input(up_n, outputs, s.hidden)), forward,
                 matrix(is_gated ? kept.data() : inner.data(), s.rows, outputs));
    matmul_fused(as_input(dy_n, s.rows, s.hidden), as_input(down_n, s.hidden, s.width), backward,
                 matrix(dup.data(), s.rows, outputs));
    return std::tuple(inner.values(), dup.values(), kept.values());
  };
  const auto run_fast = [&](const Keeping& keeping) {
    return run(cpu_ops<T>().matmul_fused, keeping, narrowed<T>(x), narrowed<T>(dy), narrowed<T>(bias), narrowed<T>(up),
               narrowed<T>(down));
  };
  const auto [inner, dup, kept] = run(reference::matmul_fused<double>, Keeping{}, x, dy, bias, up, down);
  const auto [inner_t, dup_t, kept_t] = run_fast({});
  expect_close(widened(inner_t), inner, 3 * tolerance_of<T>());
  expect_close(widened(dup_t), dup, 3 * tolerance_of<T>());
  if (cpu_ops<T>().keeps_slopes) {
    const auto [inner_too, dup_of_slopes, slopes] = run_fast({.slopes = true});
    EXPECT_EQ(widened(inner_too), widened(inner_t));
    EXPECT_EQ(widened(dup_of_slopes), widened(dup_t));
  }
  if (!cpu_ops<T>().has_blocks || s.rows % k_block_side != 0) return;
  const auto [inner_blocks, dup_blocks, kept_blocks] = run_fast({.in_blocks = true});
  EXPECT_EQ(widened(inner_blocks), widened(BlockOrder{s.rows, s.width}.blocks_of(inner_t)));
  EXPECT_EQ(widened(dup_blocks), widened(BlockOrder{s.rows, outputs}.blocks_of(dup_t)));
  const auto [inner_too, dup_of_slopes, slopes] = run_fast({.in_blocks = true, .slopes = true});
  EXPECT_EQ(widened(inner_too), widened(inner_blocks));
  EXPECT_EQ(widened(dup_of_slopes), widened(dup_blocks));
  std::vector<T> again(inner_t.size());
  MatrixView<T> view = matrix(again.data(), s.rows, s.width);
  view.in_blocks = true;
  cpu_ops<T>().activate_kept(is_gated, kept_blocks.data(), view);
  EXPECT_EQ(widened(again), widened(inner_blocks));
}

// A product of a matrix that lies in blocks, and the products that make a weight's gradient of one.
void expect_products_of_blocks(const MlpSizes& s) {
  const auto x = rounded<bf16>(random_values(s.rows * s.width, 1)),
             dy = rounded<bf16>(random_values(s.rows * s.hidden, 2)),
             w = rounded<bf16>(random_values(s.hidden * s.width, 3));
  const auto dy_t = narrowed<bf16>(dy), w_t = narrowed<bf16>(w);
  const auto blocks = BlockOrder{s.rows, s.width}.blocks_of(narrowed<bf16>(x));
  MatrixView<const bf16> in_blocks = as_input(blocks, s.rows, s.width);
  in_blocks.in_blocks = true;
  std::vector<double> y(dy.size()), dw(w.size());
  std::vector<bf16> y_t(y.size());
  std::vector<float> dw_t(w.size());
  const auto matmul = reference::matmul<double, double>;
  const OpTable<bf16>& ops = cpu_ops<bf16>();

  matmul(as_input(x, s.rows, s.width), transposed(as_input(w, s.hidden, s.width)), matrix(y.data(), s.rows, s.hidden),
         false);
  ops.matmul(in_blocks, transposed(as_input(w_t, s.hidden, s.width)), matrix(y_t.data(), s.rows, s.hidden), false);
  expect_close(widened(y_t), y, tolerance_of<bf16>());

  matmul(transposed(as_input(x, s.rows, s.width)), as_input(dy, s.rows, s.hidden), matrix(dw.data(), s.width, s.hidden),
         false);
  ops.matmul_wide(transposed(in_blocks), as_input(dy_t, s.rows, s.hidden), matrix(dw_t.data(), s.width, s.hidden),
                  false);
  expect_close(widened(dw_t), dw, tolerance_of<float>());

  matmul(transposed(as_input(dy, s.rows, s.hidden)), as_input(x, s.rows, s.width), matrix(dw.data(), s.hidden, s.width),
         false);
  ops.matmul_wide(transposed(as_input(dy_t, s.rows, s.hidden)), in_blocks, matrix(dw_t.data(), s.hidden, s.width),
                  false);
  expect_close(widened(dw_t), dw, tolerance_of<float>());
}

TEST(BlockOrder, IsReadAsRowsAre) {
  if (!cpu_ops<bf16>().has_blocks)
    GTEST_SKIP()
        << "needs a CPU with AMX, whose products read blocks: run it on an Intel Xeon of the fourth generation "
           "or later";
  for (const MlpSizes& s : {MlpSizes{32, 40, 32}, MlpSizes{96, 33, 4128}, MlpSizes{544, 70, 576}, MlpSizes{64, 300, 96},
                            MlpSizes{2080, 50, 96}, MlpSizes{544, 300, 2048}}) {
    SCOPED_TRACE(testing::Message() << s.rows << "×" << s.width << ", " << s.hidden);
    expect_products_of_blocks(s);
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

// Results that pass the caches by, written and added to.
TEST(LargeProduct, MatchesReference) {
  for (const auto& [rows, cols, inputs] : {std::array<int64_t, 3>{520, 544, 40}, {576, 480, 608}, {416, 390, 992}}) {
    const auto x = rounded<bf16>(random_values(rows * inputs, 1)), w = rounded<bf16>(random_values(inputs * cols, 2));
    const auto x_t = narrowed<bf16>(x), w_t = narrowed<bf16>(w);
    std::vector<double> expected(static_cast<size_t>(rows * cols));
    AlignedNumbers<float> sums(rows * cols);
    AlignedNumbers<bf16> rounded_sums(rows * cols);
    const auto left = as_input(x_t, rows, inputs), right = as_input(w_t, inputs, cols);
    for (const bool accumulate : {false, true}) {
      reference::matmul<double, double>(as_input(x, rows, inputs), as_input(w, inputs, cols),
                                        matrix(expected.data(), rows, cols), accumulate);
      cpu_ops<bf16>().matmul_wide(left, right, matrix(sums.data(), rows, cols), accumulate);
      if (!accumulate) {
        cpu_ops<bf16>().matmul(left, right, matrix(rounded_sums.data(), rows, cols), false);
        expect_close(widened(rounded_sums.values()), expected, tolerance_of<bf16>());
      }
      expect_close(widened(sums.values()), expected, tolerance_of<float>());
    }
  }
}

// Rows that fill no panel or stay as they lie, sums in several parts and shares, results below and above the size that
// passes the caches by.
TEST(FusedActivation, MatchesReference) {
  const OpTable<bf16>& ops = cpu_ops<bf16>();
  if (ops.fused_swiglu_multiple == 0)
    GTEST_SKIP() << "needs a CPU with AMX, whose products take activations in: run it on an Intel Xeon of the fourth "
                    "generation or later";
  for (const auto& [activation, multiple] : {std::pair(Activation::gelu, ops.fused_gelu_multiple),
                                             std::pair(Activation::swiglu, ops.fused_swiglu_multiple)}) {
    for (const MlpSizes& s :
         {MlpSizes{45, 70, 3 * multiple}, MlpSizes{64, 32, multiple}, MlpSizes{300, 96, 64 * multiple},
          MlpSizes{230, 4096, 3 * multiple}, MlpSizes{33, 4200, 2 * multiple}, MlpSizes{160, 544, 2 * multiple},
          MlpSizes{544, 96, 16 * multiple}})
      for (const bool has_bias : {true, false}) {
        SCOPED_TRACE(testing::Message() << static_cast<int>(activation) << ": " << s.rows << " rows, " << s.hidden
                                        << " × " << s.width << (has_bias ? ", bias" : ""));
        expect_activation_in_products<bf16>(activation, s, has_bias);
      }
  }
  set_thread_count(1);  // one thread: the gradient of [gate, up] exceeds its second-level cache
  expect_activation_in_products<bf16>(Activation::swiglu, {1056, 32, 16 * ops.fused_swiglu_multiple}, true);
  set_thread_count(0);
}

}  // namespace
}  // namespace tprimat::engine

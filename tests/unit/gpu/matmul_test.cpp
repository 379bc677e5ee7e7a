#include <algorithm>
#include <filesystem>

#include "device/gpu/context.h"
#include "device_vector.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/gpu_ops.h"
#include "ops/reference/matmul.h"
#if defined(TPRIMAT_GPU_HOST)
#include "emulator/host_blas.h"
#endif

namespace tprimat::engine::gpu {
namespace {

struct Sizes {
  int64_t m, n, k;
};
const Sizes k_matmul_sizes[] = {{1, 1, 1}, {3, 5, 7}, {64, 48, 32}, {17, 130, 65}, {0, 4, 3}, {4, 0, 3}};

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

template <class T>
MatrixView<const T> reading(const MatrixView<T>& m) {
  return {m.data, m.rows, m.cols, m.row_stride, m.col_stride};
}

// Random values of T on both sides.
template <class T>
struct Both {
  explicit Both(int64_t count, uint64_t seed, double scale = 1.0)
      : host(rounded<T>(random_values(count, seed, scale))), device(narrowed<T>(host)) {}
  std::vector<double> host;
  DeviceVector<T> device;
};

template <class T, class C>
void compare_product(const Sizes& s, const Variant& v) {
  Both<T> a(elements_of(s.m, s.k, v.gap), 1), b(elements_of(s.k, s.n, v.gap), 2);
  Both<C> c(elements_of(s.m, s.n, v.gap), 3);
  reference::matmul<double, double>(reading(view_of(a.host.data(), s.m, s.k, v.turn_a, v.gap)),
                                    reading(view_of(b.host.data(), s.k, s.n, v.turn_b, v.gap)),
                                    view_of(c.host.data(), s.m, s.n, false, v.gap), v.accumulate);
  const auto multiply = [] {
    if constexpr (std::is_same_v<T, C>)
      return gpu_ops<T>().matmul;
    else
      return gpu_ops<T>().matmul_wide;
  }();
  multiply(reading(view_of(a.device.data(), s.m, s.k, v.turn_a, v.gap)),
           reading(view_of(b.device.data(), s.k, s.n, v.turn_b, v.gap)),
           view_of(c.device.data(), s.m, s.n, false, v.gap), v.accumulate);
  expect_close(c.device, c.host, tolerance_of<C>());
}

TEST(GpuMatmul, MatchesReference) {
  test_device();
  for (const Sizes& s : k_matmul_sizes)
    for (int bits = 0; bits < 16; ++bits) {
      const Variant v{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0 ? 3 : 0};
      SCOPED_TRACE(testing::Message() << s.m << "×" << s.n << "×" << s.k << (v.turn_a ? " aT" : "")
                                      << (v.turn_b ? " bT" : "") << " gap " << v.gap);
      compare_product<float, float>(s, v);
      compare_product<bf16, bf16>(s, v);
      compare_product<bf16, float>(s, v);
      compare_product<f16, f16>(s, v);
      compare_product<f16, float>(s, v);
    }
}

// x·Wᵀ with what follows it.
template <class T>
struct Layer {
  explicit Layer(const Sizes& sizes)
      : s(sizes), x(s.m * s.k, 1), w(s.n * s.k, 2, 0.3), bias(s.n, 3), aux(s.m * s.n, 4), y(s.m * s.n, 5) {}
  Sizes s;
  Both<T> x, w, bias, aux, y;

  void run_reference(const Epilogue<double>& epilogue) {
    reference::matmul_fused<double>(reading(matrix(x.host.data(), s.m, s.k)),
                                    reading(transposed(matrix(w.host.data(), s.n, s.k))), epilogue,
                                    matrix(y.host.data(), s.m, s.n));
  }
  void run(const Epilogue<T>& epilogue) {
    gpu_ops<T>().matmul_fused(reading(matrix(x.device.data(), s.m, s.k)),
                              reading(transposed(matrix(w.device.data(), s.n, s.k))), epilogue,
                              matrix(y.device.data(), s.m, s.n));
  }
  void compare() {
    expect_close(y.device, y.host, 2 * tolerance_of<T>());
    expect_close(aux.device, aux.host, tolerance_of<T>());
  }
};

template <class T>
void compare_epilogues(const Sizes& s) {
  SCOPED_TRACE(testing::Message() << s.m << "×" << s.n << "×" << s.k);
  Layer<T> plain(s), with_bias(s), with_gelu(s), no_bias(s), backward(s);
  plain.run_reference({});
  plain.run({});
  plain.compare();
  with_bias.run_reference({with_bias.bias.host.data()});
  with_bias.run({with_bias.bias.device.data()});
  with_bias.compare();
  with_gelu.run_reference({with_gelu.bias.host.data(), with_gelu.aux.host.data()});
  with_gelu.run({with_gelu.bias.device.data(), with_gelu.aux.device.data()});
  with_gelu.compare();
  no_bias.run_reference({nullptr, no_bias.aux.host.data()});
  no_bias.run({nullptr, no_bias.aux.device.data()});
  no_bias.compare();
  backward.run_reference({nullptr, nullptr, backward.aux.host.data()});
  backward.run({nullptr, nullptr, backward.aux.device.data()});
  backward.compare();
}

const Sizes k_fused_sizes[] = {{1, 8, 5}, {3, 5, 7}, {33, 40, 17}, {64, 128, 32}};

// dW += dyᵀ·x and the bias's gradient.
template <class T>
void compare_row_sums(const Sizes& s) {
  Both<T> dy(s.k * s.m, 1), x(s.k * s.n, 2);
  Both<float> dw(s.m * s.n, 3), dbias(s.m, 4);
  for (const bool accumulate : {true, false}) {
    if (!accumulate) dw.device = DeviceVector<float>::poisoned(s.m * s.n);
    reference::matmul_with_row_sums<double>(reading(transposed(matrix(dy.host.data(), s.k, s.m))),
                                            reading(matrix(x.host.data(), s.k, s.n)), matrix(dw.host.data(), s.m, s.n),
                                            accumulate, dbias.host.data());
    gpu_ops<T>().matmul_with_row_sums(reading(transposed(matrix(dy.device.data(), s.k, s.m))),
                                      reading(matrix(x.device.data(), s.k, s.n)), matrix(dw.device.data(), s.m, s.n),
                                      accumulate, dbias.device.data());
    expect_close(dw.device, dw.host, tolerance_of<float>());
    expect_close(dbias.device, dbias.host, tolerance_of<float>());
  }
}

template <class T>
void compare_fused() {
  for (const Sizes& s : k_fused_sizes) {
    compare_epilogues<T>(s);
    compare_row_sums<T>(s);
  }
}

TEST(GpuMatmul, EpiloguesMatchReference) {
  test_device();
  compare_fused<float>();
  compare_fused<bf16>();
  compare_fused<f16>();
}

#if defined(TPRIMAT_GPU_HOST)

// The shim's matrix library as it was, whatever a test makes of it.
class WithHabits {
 public:
  WithHabits() : settings_(product_settings()) { host::blas_habits() = {}; }
  ~WithHabits() {
    host::blas_habits() = {};
    product_settings() = settings_;
  }
  WithHabits(const WithHabits&) = delete;
  WithHabits& operator=(const WithHabits&) = delete;
  host::BlasHabits& operator*() { return host::blas_habits(); }

 private:
  ProductSettings settings_;
};

// A product that no other test asks for: sizes count up.
class FreshProduct {
 public:
  FreshProduct() : n_(next_++), a_(8 * 8, 1), b_(8 * n_, 2), c_(8 * n_, 3) {}
  void run(bool accumulate = false) {
    const auto a = reading(matrix(a_.device.data(), 8, 8)), b = reading(matrix(b_.device.data(), 8, n_));
    gpu_ops<float>().matmul(a, b, matrix(c_.device.data(), 8, n_), accumulate);
    reference::matmul<double, double>(reading(matrix(a_.host.data(), 8, 8)), reading(matrix(b_.host.data(), 8, n_)),
                                      matrix(c_.host.data(), 8, n_), accumulate);
  }
  void compare() { expect_close(c_.device, c_.host, tolerance_of<float>()); }

 private:
  static inline int64_t next_ = 201;
  int64_t n_;
  Both<float> a_, b_, c_;
};

TEST(GpuMatmul, EpiloguesThatTheLibraryLacksAreMadeFromParts) {
  test_device();
  WithHabits habits;
  (*habits).knows_epilogues = false;
  Layer<bf16> layer({19, 24, 8});
  layer.run_reference({layer.bias.host.data(), layer.aux.host.data()});
  layer.run({layer.bias.device.data(), layer.aux.device.data()});
  layer.compare();
  compare_row_sums<bf16>({19, 24, 8});
}

// Whichever is faster, measured once; always the product where nothing is timed.
TEST(GpuMatmul, AnEpilogueThatDoesNotPayIsMadeFromParts) {
  test_device();
  for (const bool timed : {true, false})
    for (const double milliseconds : {-20.0, 400.0}) {
      WithHabits habits;
      (*habits).pause_milliseconds = {20};             // of the product among the parts, too
      (*habits).epilogue_milliseconds = milliseconds;  // far beyond the emulated kernels of the parts
      product_settings().time_candidates = timed;
      const int64_t m = 41 + (timed ? 2 : 0) + (milliseconds > 0 ? 1 : 0);  // a product that no other test asks for
      for (int run = 0; run < 2; ++run) {
        Layer<bf16> layer({m, 24, 8});
        layer.run_reference({layer.bias.host.data(), layer.aux.host.data()});
        const int before = (*habits).fused_products;
        layer.run({layer.bias.device.data(), layer.aux.device.data()});
        layer.compare();
        if (run == 1) {
          EXPECT_EQ((*habits).fused_products - before, timed && milliseconds > 0 ? 0 : 1);
        }
      }
    }
}

TEST(GpuMatmul, Fp32InPlaceOfTf32IsSaidOnce) {
  test_device();
  WithHabits habits;
  product_settings().tf32 = true;
  kernel_report() = {};
  FreshProduct().run();
  EXPECT_TRUE(kernel_report().warnings.empty());
  (*habits).knows_tf32 = false;
  for (int i = 0; i < 2; ++i) {
    FreshProduct product;
    product.run();
    product.compare();
  }
  ASSERT_EQ(kernel_report().warnings.size(), 1u);
  EXPECT_NE(kernel_report().warnings[0].find("fp32 products run in fp32, not in tf32"), std::string::npos);
}

TEST(GpuMatmul, TakesTheFastestCandidateAndAsksOnce) {
  test_device();
  WithHabits habits;
  (*habits).candidates = 3;
  (*habits).pause_milliseconds = {6, 1, 6};
  for (const bool accumulate : {false, true}) {
    FreshProduct product;
    product.run(accumulate);
    product.compare();  // trials leave nothing behind
    EXPECT_EQ((*habits).last_candidate, 1);
    const int searches = (*habits).searches, products = (*habits).products;
    product.run(accumulate);
    product.compare();
    EXPECT_EQ((*habits).last_candidate, 1);
    EXPECT_EQ((*habits).searches, searches);
    EXPECT_EQ((*habits).products, products + 1);
  }
}

TEST(GpuMatmul, WithoutTimingTheFirstCandidateStays) {
  test_device();
  WithHabits habits;
  (*habits).candidates = 3;
  (*habits).pause_milliseconds = {6, 1, 6};
  product_settings().time_candidates = false;
  FreshProduct product;
  product.run();
  EXPECT_EQ((*habits).last_candidate, 0);
  EXPECT_EQ((*habits).products, 1);
}

TEST(GpuMatmul, NothingIsTimedWhileAGraphIsRecorded) {
  test_device();
  WithHabits habits;
  (*habits).candidates = 3;
  (*habits).pause_milliseconds = {6, 1, 6};
  FreshProduct product;
  check(driver::begin_capture(context().stream));
  product.run();
  Graph graph = nullptr;
  check(driver::end_capture(context().stream, &graph));
  EXPECT_EQ((*habits).products, 1);
  EXPECT_EQ((*habits).last_candidate, 0);
  GraphProgram program = nullptr;
  check(driver::make_program(&program, graph));
  check(driver::launch_program(program, context().stream));
  product.compare();
  product.run();  // outside, the choice is made
  EXPECT_EQ((*habits).last_candidate, 1);
  driver::destroy_program(program);
  driver::destroy_graph(graph);
}

#endif

}  // namespace
}  // namespace tprimat::engine::gpu

#include "ops/reference/attention.h"

#include <cstring>
#include <limits>

#include "base/error.h"
#include "device/gpu/context.h"
#include "ops/gpu/attention_choice.h"
#include "ops/gpu/attention_cudnn.h"
#include "ops/gpu/attention_kernels.h"
#include "ops/gpu/blas_product.h"
#include "ops/gpu/gpu_ops.h"
#include "unit/gpu/device_vector.h"

namespace tprimat::engine::gpu {
namespace {

struct AttentionCase {
  const char* name;
  AttentionShape shape;
  int64_t gap = 0;  // elements between rows, and so rows that are no whole packs of 16 bytes
};

// Batch, queries, keys, first query, query heads, key/value heads, head size, window.
const AttentionCase k_cases[] = {
    {"one token", {1, 1, 1, 0, 1, 1, 64, 0}},
    {"whole tiles", {1, 128, 128, 0, 1, 1, 64, 0}},
    {"tail of a tile, two sequences, groups of two", {2, 71, 71, 0, 4, 2, 16, 0}},
    {"a group of four", {1, 40, 40, 0, 4, 1, 16, 0}},
    {"a group of eight", {1, 17, 17, 0, 16, 2, 16, 0}, 8},
    {"more than a tile of queries", {1, 150, 150, 0, 1, 1, 64, 0}, 16},
    {"head of 96", {1, 70, 70, 0, 1, 1, 96, 0}},
    {"head of 128", {1, 140, 140, 0, 1, 1, 128, 0}},
    {"head of 256", {1, 70, 70, 0, 1, 1, 256, 0}},
    {"head of 80", {1, 20, 20, 0, 2, 2, 80, 0}, 8},
    {"head of 136", {1, 20, 20, 0, 1, 1, 136, 0}},
    {"head that is no whole pack", {1, 35, 35, 0, 2, 1, 18, 0}},
    {"unpaired head size", {1, 35, 35, 0, 2, 2, 21, 0}},
    {"rows that are no whole packs", {1, 35, 35, 0, 2, 1, 64, 0}, 3},
    {"window inside a tile", {1, 150, 150, 0, 1, 1, 32, 10}},
    {"window over tiles", {1, 180, 180, 0, 1, 1, 16, 100}},
    {"second half", {2, 70, 140, 70, 2, 1, 16, 0}},
    {"whole tiles before", {1, 40, 168, 128, 2, 2, 16, 0}},
    {"more keys than seen", {1, 30, 150, 40, 2, 1, 64, 0}},
    {"fewer keys than positions", {1, 70, 50, 33, 1, 1, 16, 0}},
    {"offset and window", {1, 100, 201, 101, 2, 1, 16, 37}, 8},
    {"some queries see nothing", {1, 80, 50, 10, 1, 1, 16, 20}},
    {"no query", {1, 0, 20, 5, 2, 1, 16, 0}},
};

constexpr size_t size_of(int64_t count) { return static_cast<size_t>(count); }

// Rows of `heads` heads with NaN between them, which nobody may read or write.
struct RowLayout {
  RowLayout(const AttentionShape& shape, int64_t token_count, int64_t heads, int64_t gap)
      : batch(shape.batch), tokens(token_count), width(heads * shape.head_dim), row(width + gap) {}
  int64_t batch, tokens, width, row;

  int64_t count() const { return batch * tokens * row; }
  bool is_gap(size_t i) const { return static_cast<int64_t>(i) % row >= width; }
  std::vector<double> with_gaps(std::vector<double> values) const {
    for (size_t i = 0; i < values.size(); ++i)
      if (is_gap(i)) values[i] = std::numeric_limits<double>::quiet_NaN();
    return values;
  }
  template <class T>
  HeadRows<T> rows(T* data, int64_t offset = 0) const {
    return {data + offset, row, tokens * row};
  }
};

struct Layouts {
  explicit Layouts(const AttentionCase& c)
      : query(c.shape, c.shape.queries, c.shape.heads, c.gap), kv(c.shape, c.shape.keys, 2 * c.shape.kv_heads, c.gap) {}
  RowLayout query;  // of y and gradients too
  RowLayout kv;     // keys, then values, of a token
  int64_t values() const { return kv.width / 2; }
};

// What the passes read, exact in T.
struct PassInputs {
  std::vector<double> query, kv, dy, dkv_before;
};
template <class T>
PassInputs make_inputs(const Layouts& layouts, uint64_t seed) {
  const auto values = [&](const RowLayout& layout, uint64_t which, double scale) {
    return layout.with_gaps(rounded<T>(random_values(layout.count(), seed * 4 + which, scale)));
  };
  return {values(layouts.query, 0, 1.5), values(layouts.kv, 1, 1.5), values(layouts.query, 2, 1.0),
          values(layouts.kv, 3, 1.0)};
}

template <class A>
struct PassResults {
  std::vector<A> y, logsumexp, dquery, dkv;
};

template <class T>
HeadRows<const T> read_only(const HeadRows<T>& rows) {
  return {rows.data, rows.row_stride, rows.sequence_stride};
}

// The arguments of both passes over any memory.
template <class T>
struct PassMemory {
  T *query, *kv, *dy, *y, *dquery, *dkv;
  Accum<T>* logsumexp;
  const Layouts& layouts;

  AttentionInputs<T> inputs() const {
    return {read_only(layouts.query.rows(query)), read_only(layouts.kv.rows(kv)),
            read_only(layouts.kv.rows(kv, layouts.values()))};
  }
  HeadRows<T> y_rows() const { return layouts.query.rows(y); }
  AttentionGradient<T> gradient(bool accumulate) const {
    return {inputs(),
            read_only(y_rows()),
            logsumexp,
            read_only(layouts.query.rows(dy)),
            layouts.query.rows(dquery),
            layouts.kv.rows(dkv),
            layouts.kv.rows(dkv, layouts.values()),
            accumulate};
  }
};

int64_t statistics_of(const AttentionShape& shape) { return shape.batch * shape.heads * shape.queries; }

PassResults<double> run_reference(const AttentionShape& shape, const Layouts& layouts, PassInputs in, bool accumulate) {
  PassResults<double> out{std::vector<double>(in.query.size()), std::vector<double>(size_of(statistics_of(shape))),
                          std::vector<double>(in.query.size()), std::move(in.dkv_before)};
  const PassMemory<double> memory{in.query.data(),   in.kv.data(),   in.dy.data(),         out.y.data(),
                                  out.dquery.data(), out.dkv.data(), out.logsumexp.data(), layouts};
  reference::attention_forward(shape, memory.inputs(), memory.y_rows(), out.logsumexp.data());
  reference::attention_backward(shape, memory.gradient(accumulate));
  return out;
}

// Which implementation does which pass.
struct PassChoices {
  AttentionChoice forward = AttentionChoice::own, backward = AttentionChoice::own;
};

template <class T>
PassResults<T> run_on_device(const AttentionShape& shape, const Layouts& layouts, const PassInputs& in, bool accumulate,
                             std::vector<float>& logsumexp, const PassChoices& choices = {}) {
  const DeviceVector<T> query(narrowed<T>(in.query)), kv(narrowed<T>(in.kv)), dy(narrowed<T>(in.dy));
  auto y = DeviceVector<T>::poisoned(query.size()), dquery = DeviceVector<T>::poisoned(query.size());
  auto dkv = accumulate ? DeviceVector<T>(narrowed<T>(in.dkv_before)) : DeviceVector<T>::poisoned(kv.size());
  auto statistics = DeviceVector<float>::poisoned(statistics_of(shape));
  const PassMemory<T> memory{query.data(),  kv.data(),  dy.data(),         y.data(),
                             dquery.data(), dkv.data(), statistics.data(), layouts};
  const std::optional<AttentionChoice> before = choose_attention(choices.forward);
  gpu_ops<T>().attention_forward(shape, memory.inputs(), memory.y_rows(), statistics.data());
  choose_attention(choices.backward);
  gpu_ops<T>().attention_backward(shape, memory.gradient(accumulate));
  choose_attention(before);
  logsumexp = statistics.download();
  return {y.download(), {}, dquery.download(), dkv.download()};
}

// Values of the rows; the gaps must still be what they were.
template <class T>
std::vector<double> without_gaps(const RowLayout& layout, const std::vector<T>& values) {
  std::vector<double> kept;
  const std::vector<double> wide = widened(values);
  for (size_t i = 0; i < wide.size(); ++i) {
    if (layout.is_gap(i))
      EXPECT_TRUE(std::isnan(wide[i])) << "written between rows at " << i;
    else
      kept.push_back(wide[i]);
  }
  return kept;
}

// Together, because one of them may be exactly zero.
template <class T>
std::vector<double> all_gradients(const Layouts& layouts, const PassResults<T>& results) {
  std::vector<double> all = without_gaps(layouts.query, results.dquery);
  const std::vector<double> kv = without_gaps(layouts.kv, results.dkv);
  all.insert(all.end(), kv.begin(), kv.end());
  return all;
}

void expect_logsumexp(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_TRUE(static_cast<double>(actual[i]) == expected[i] || std::abs(actual[i] - expected[i]) < 2e-5)
        << i << ": " << actual[i] << " instead of " << expected[i];
}

template <class T>
void expect_reference(const AttentionCase& c, uint64_t seed, bool accumulate, const PassChoices& choices = {}) {
  const Layouts layouts(c);
  const PassInputs in = make_inputs<T>(layouts, seed);
  PassResults<double> expected = run_reference(c.shape, layouts, in, accumulate);
  expected.y = layouts.query.with_gaps(expected.y), expected.dquery = layouts.query.with_gaps(expected.dquery);
  expected.dkv = layouts.kv.with_gaps(expected.dkv);
  std::vector<float> logsumexp;
  const PassResults<T> actual = run_on_device<T>(c.shape, layouts, in, accumulate, logsumexp, choices);
  expect_logsumexp(logsumexp, expected.logsumexp);
  tprimat::engine::expect_close(without_gaps(layouts.query, actual.y), without_gaps(layouts.query, expected.y),
                                tolerance_of<T>());
  tprimat::engine::expect_close(all_gradients(layouts, actual), all_gradients(layouts, expected), tolerance_of<T>());
}

template <class T>
class GpuAttention : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuAttention, GpuTypes);

TYPED_TEST(GpuAttention, MatchesReference) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const AttentionCase& c : k_cases) {
    SCOPED_TRACE(c.name);
    expect_reference<TypeParam>(c, seed, false);
  }
}

TYPED_TEST(GpuAttention, AddsToTheGradientsOfKeysAndValues) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const AttentionCase& c : {AttentionCase{"whole packs", {2, 30, 75, 45, 4, 2, 16, 0}},
                                 AttentionCase{"no whole packs", {1, 30, 75, 20, 2, 2, 18, 9}, 1}}) {
    SCOPED_TRACE(c.name);
    expect_reference<TypeParam>(c, seed, true);
  }
}

// Memory for the statistics of two heads: less than a sequence has.
TYPED_TEST(GpuAttention, TakesAsManyHeadsAtATimeAsTheScratchMemoryHolds) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  test_device();  // whose context it is
  const size_t whole = std::exchange(context().scratch_bytes, size_t{4} * 64 * sizeof(float));
  expect_reference<TypeParam>({"three groups", {2, 64, 70, 6, 6, 3, 16, 0}, 8}, seed, false);
  context().scratch_bytes = whole;
}

TYPED_TEST(GpuAttention, LaterKeysMayOutweighAllBefore) {
  using T = TypeParam;
  const AttentionCase c{"", {1, 200, 200, 0, 1, 1, 16, 0}};
  const Layouts layouts(c);
  PassInputs in = make_inputs<T>(layouts, 7);
  for (int64_t t = 100; t < c.shape.keys; ++t)  // scores rise by hundreds from one tile of keys to the next
    for (int64_t i = 0; i < c.shape.head_dim; ++i) in.kv[size_of(t * layouts.kv.row + i)] *= static_cast<double>(t);
  in.kv = rounded<T>(in.kv);
  std::vector<float> logsumexp;
  const PassResults<double> expected = run_reference(c.shape, layouts, in, false);
  const PassResults<T> actual = run_on_device<T>(c.shape, layouts, in, false, logsumexp);
  tprimat::engine::expect_close(widened(actual.y), expected.y, tolerance_of<T>());
}

TYPED_TEST(GpuAttention, NanReachesTheOutput) {
  using T = TypeParam;
  const AttentionCase c{"", {1, 2, 2, 0, 1, 1, 16, 0}};
  const Layouts layouts(c);
  PassInputs in = make_inputs<T>(layouts, 8);
  in.query[3] = std::numeric_limits<double>::quiet_NaN();
  std::vector<float> logsumexp;
  EXPECT_TRUE(std::isnan(widened(run_on_device<T>(c.shape, layouts, in, false, logsumexp).y)[0]));
}

TYPED_TEST(GpuAttention, TheSameInputsGiveTheSameBits) {
  using T = TypeParam;
  const AttentionCase c{"", {1, 70, 70, 0, 4, 2, 16, 0}};
  const Layouts layouts(c);
  const PassInputs in = make_inputs<T>(layouts, 9);
  std::vector<float> first_logsumexp, second_logsumexp;
  const PassResults<T> first = run_on_device<T>(c.shape, layouts, in, false, first_logsumexp);
  const PassResults<T> second = run_on_device<T>(c.shape, layouts, in, false, second_logsumexp);
  EXPECT_EQ(first_logsumexp, second_logsumexp);
  EXPECT_EQ(first.y, second.y);
  EXPECT_EQ(first.dquery, second.dquery);
  EXPECT_EQ(first.dkv, second.dkv);
}

std::string name_of_backward(AttentionChoice choice) {
  return choice == AttentionChoice::own ? "own" : choice == AttentionChoice::cudnn ? "cudnn" : "cudnn-unordered";
}
std::string name_of_forward(AttentionChoice choice) { return choice == AttentionChoice::own ? "own" : "cudnn"; }
std::string said() {
  std::string all;
  for (const std::string& warning : kernel_report().warnings) all += warning + "\n";
  return all;
}

// On a GPU of NVIDIA with cuDNN: alone, and one pass each. Where our own kernels stepped in, cuDNN was not tested.
TYPED_TEST(GpuAttention, CudnnMatchesReferenceAndMixesWithOurOwn) {
  using T = TypeParam;
  if constexpr (std::is_same_v<T, float>) {
    GTEST_SKIP() << "not for float: cuDNN runs bf16 and f16 only, which the other instances test";
  } else {
    test_device();
    const CudnnRefusal refusal = refusal_of_cudnn();
    ASSERT_FALSE(refusal != nullptr && is_cudnn_installed()) << *refusal;
    if (refusal != nullptr) GTEST_SKIP() << *refusal << "; scripts/build_gpu.sh nvd installs cuDNN";
    const uint64_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    const AttentionCase cases[] = {{"one head", {1, 128, 128, 0, 1, 1, 64, 0}},
                                   {"groups", {2, 200, 200, 0, 8, 2, 128, 0}, 16},
                                   {"head of 96", {1, 192, 192, 0, 2, 2, 96, 0}},
                                   {"second half", {2, 128, 256, 128, 4, 1, 64, 0}},
                                   {"more keys than seen", {1, 64, 256, 64, 2, 1, 64, 0}},
                                   {"window", {1, 320, 320, 0, 2, 1, 64, 100}}};
    const auto own = AttentionChoice::own, cudnn = AttentionChoice::cudnn, any = AttentionChoice::cudnn_unordered;
    for (const AttentionCase& c : cases)
      for (const PassChoices& choices : {PassChoices{cudnn, cudnn}, {cudnn, any}, {own, cudnn}, {cudnn, own}})
        for (const bool accumulate : {false, true}) {
          SCOPED_TRACE(c.name);
          kernel_report() = {};
          expect_reference<T>(c, seed, accumulate, choices);
          EXPECT_EQ(kernel_report().attention_forward, name_of_forward(choices.forward)) << said();
          EXPECT_EQ(kernel_report().attention_backward, name_of_backward(choices.backward)) << said();
        }
  }
}

TEST(GpuAttentionChoice, IsReadFromItsName) {
  EXPECT_EQ(read_attention_choice("own"), AttentionChoice::own);
  EXPECT_EQ(read_attention_choice("cudnn"), AttentionChoice::cudnn);
  EXPECT_EQ(read_attention_choice("cudnn-unordered"), AttentionChoice::cudnn_unordered);
  EXPECT_THROW(read_attention_choice("flash"), Error);
}

TEST(GpuAttentionChoice, WhatRanIsNotedAndAFallbackSaidOnce) {
  test_device();
  const CudnnRefusal refusal = refusal_of_cudnn();
  if (refusal == nullptr) GTEST_SKIP() << "cuDNN works here; the fallback needs a build with -DTPRIMAT_GPU_CUDNN=OFF";
  kernel_report() = {};
  const AttentionCase c{"", {1, 16, 16, 0, 1, 1, 16, 0}};
  expect_reference<bf16>(c, 1, false);
  EXPECT_EQ(kernel_report().attention(), "own");
  EXPECT_TRUE(kernel_report().warnings.empty()) << said();  // they were wanted
  for (int call = 0; call < 2; ++call)
    expect_reference<bf16>(c, 1, false, {AttentionChoice::cudnn, AttentionChoice::cudnn_unordered});
  EXPECT_EQ(kernel_report().attention(), "own");
  ASSERT_EQ(kernel_report().warnings.size(), 2u) << said();  // one for each pass
  EXPECT_NE(said().find("attention forward runs on this program's own kernels"), std::string::npos) << said();
  EXPECT_NE(said().find("attention backward runs on this program's own kernels"), std::string::npos) << said();
  EXPECT_NE(said().find(*refusal), std::string::npos) << said();
}

TEST(KernelReport, NamesAttentionByBothPasses) {
  EXPECT_EQ((KernelReport{"", "", {}}.attention()), "");
  EXPECT_EQ((KernelReport{"own", "", {}}.attention()), "own");
  EXPECT_EQ((KernelReport{"cudnn", "cudnn", {}}.attention()), "cudnn");
  EXPECT_EQ((KernelReport{"cudnn", "cudnn-unordered", {}}.attention()), "cudnn-unordered");
  EXPECT_EQ((KernelReport{"cudnn", "own", {}}.attention()), "cudnn forward, own backward");
}

TEST(GpuAttentionChoice, SumsOutOfOrderAreTheRuleWhereTheyMayBe) {
  const ProductSettings settings = product_settings();
  const std::optional<AttentionChoice> before = choose_attention(std::nullopt);
  product_settings().unordered_sums = false;
  EXPECT_EQ(attention_choice(), AttentionChoice::cudnn);
  product_settings().unordered_sums = true;
  EXPECT_EQ(attention_choice(), AttentionChoice::cudnn_unordered);
  choose_attention(AttentionChoice::own);
  EXPECT_EQ(attention_choice(), AttentionChoice::own);
  choose_attention(before);
  product_settings() = settings;
}

TEST(GpuAttentionShape, HeadsBeyondTheKernelsAreAnError) {
  EXPECT_THROW(gpu_ops<bf16>().attention_forward({1, 1, 1, 0, 1, 1, 320, 0}, {}, {}, nullptr), Error);
}

TEST(GpuHeadRows, AreAddedAndClearedWithinTheirBlock) {
  const HeadBlock block{2, 3, 150};  // rows of 152 in sequences of 4 rows
  const std::vector<double> ones(2 * 4 * 152, 1.0);
  const DeviceVector<f16> from(narrowed<f16>(ones)), to(narrowed<f16>(ones));
  add_heads<f16>(block, {from.data(), 152, 4 * 152}, {to.data(), 152, 4 * 152});
  const std::vector<double> added = widened(to.download());
  clear_heads<f16>(block, {to.data(), 152, 4 * 152});
  const std::vector<double> cleared = widened(to.download());
  for (size_t i = 0; i < added.size(); ++i) {
    const bool inside = i % 152 < 150 && i / 152 % 4 < 3;
    ASSERT_EQ(added[i], inside ? 2.0 : 1.0) << i;
    ASSERT_EQ(cleared[i], inside ? 0.0 : 1.0) << i;
  }
}

}  // namespace
}  // namespace tprimat::engine::gpu

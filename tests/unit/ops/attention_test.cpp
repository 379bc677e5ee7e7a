#include "ops/reference/attention.h"

#include <cstring>
#include <limits>

#include "device/parallel.h"
#include "op_test.h"
#include "ops/cpu/growing_buffer.h"

namespace tprimat::engine {
namespace {

struct AttentionCase {
  const char* name;
  AttentionShape shape;
};

// Batch, queries, keys, first query, query heads, key/value heads, head size, window.
const AttentionCase k_cases[] = {
    {"one token", {1, 1, 1, 0, 1, 1, 16, 0}},
    {"one tile", {1, 64, 64, 0, 2, 2, 64, 0}},
    {"tail of a tile", {2, 71, 71, 0, 4, 2, 64, 0}},
    {"many tiles", {1, 200, 200, 0, 2, 1, 32, 0}},
    {"odd head size", {1, 67, 67, 0, 2, 2, 20, 0}},
    {"unpaired head size", {1, 67, 67, 0, 2, 2, 21, 0}},
    {"head of 128", {1, 65, 65, 0, 1, 1, 128, 0}},
    {"window inside a tile", {1, 150, 150, 0, 2, 1, 16, 10}},
    {"window over tiles", {1, 200, 200, 0, 1, 1, 16, 100}},
    {"two blocks of queries", {1, 300, 300, 0, 2, 1, 40, 0}},
    {"window over blocks", {1, 300, 300, 0, 2, 1, 16, 150}},
    {"second half", {2, 70, 140, 70, 2, 1, 16, 0}},
    {"whole tiles before", {1, 40, 168, 128, 2, 2, 16, 0}},
    {"more keys than seen", {1, 30, 150, 40, 2, 1, 16, 0}},
    {"fewer keys than positions", {1, 70, 50, 33, 1, 1, 16, 0}},
    {"offset and window", {1, 100, 201, 101, 2, 1, 16, 37}},
    {"some queries see nothing", {1, 80, 50, 10, 1, 1, 16, 20}},
    {"one query sees nothing", {1, 33, 32, 0, 1, 1, 16, 1}},
    {"many queries see nothing", {1, 128, 50, 10, 1, 1, 16, 20}},
    {"no query", {1, 0, 20, 5, 2, 1, 16, 0}},
};

// Queries, keys and values of all tokens: queries in rows of their own, keys and values side by side with a gap.
template <class T>
struct Tokens {
  Tokens(const AttentionShape& shape, const std::vector<double>& random)
      : query_row(shape.heads * shape.head_dim),
        kv_row(2 * shape.kv_heads * shape.head_dim + 3),
        kv_offset(shape.kv_heads * shape.head_dim),
        queries(shape.queries),
        keys(shape.keys),
        query(static_cast<size_t>(shape.batch * queries * query_row)),
        kv(static_cast<size_t>(shape.batch * keys * kv_row)) {
    for (size_t i = 0; i < query.size(); ++i) query[i] = narrow<T>(static_cast<Accum<T>>(random[i]));
    for (size_t i = 0; i < kv.size(); ++i) kv[i] = narrow<T>(static_cast<Accum<T>>(random[query.size() + i]));
  }
  static int64_t count(const AttentionShape& s) {
    return s.batch * (s.queries * s.heads * s.head_dim + s.keys * (2 * s.kv_heads * s.head_dim + 3));
  }

  HeadRows<T> query_rows() { return {query.data(), query_row, queries * query_row}; }
  HeadRows<T> key_rows() { return {kv.data(), kv_row, keys * kv_row}; }
  HeadRows<T> value_rows() { return {kv.data() + kv_offset, kv_row, keys * kv_row}; }

  int64_t query_row, kv_row, kv_offset, queries, keys;
  std::vector<T> query, kv;
};

template <class T>
HeadRows<const T> read_only(const HeadRows<T>& rows) {
  return {rows.data, rows.row_stride, rows.sequence_stride};
}
template <class T>
AttentionInputs<T> inputs_of(Tokens<T>& tokens) {
  return {read_only(tokens.query_rows()), read_only(tokens.key_rows()), read_only(tokens.value_rows())};
}
template <class T>
HeadRows<T> output_rows(const AttentionShape& shape, std::vector<T>& y) {
  const int64_t row = shape.heads * shape.head_dim;
  return {y.data(), row, shape.queries * row};
}

template <class T>
struct Passes {
  std::vector<T> y;
  std::vector<Accum<T>> logsumexp;
  Tokens<T> gradient;
};

template <class T>
struct PassInputs {
  Tokens<T> tokens;
  std::vector<T> dy;
  Tokens<T> before;  // what the gradients hold before
  bool accumulate;
};
template <class T>
PassInputs<T> make_inputs(const AttentionShape& shape, bool accumulate) {
  const int64_t out = shape.batch * shape.queries * shape.heads * shape.head_dim;
  return {Tokens<T>(shape, rounded<T>(random_values(Tokens<T>::count(shape), 1, 1.5))),
          narrowed<T>(random_values(out, 2)), Tokens<T>(shape, rounded<T>(random_values(Tokens<T>::count(shape), 3))),
          accumulate};
}
template <class T>
PassInputs<double> in_double(const AttentionShape& shape, const PassInputs<T>& from) {
  PassInputs<double> to = make_inputs<double>(shape, from.accumulate);
  to.tokens.query = widened(from.tokens.query), to.tokens.kv = widened(from.tokens.kv);
  to.before.query = widened(from.before.query), to.before.kv = widened(from.before.kv);
  to.dy = widened(from.dy);
  return to;
}

template <class T>
Passes<T> run_passes(const AttentionShape& shape, PassInputs<T> in) {
  Passes<T> result{std::vector<T>(in.dy.size()),
                   std::vector<Accum<T>>(static_cast<size_t>(shape.batch * shape.heads * shape.queries)), in.before};
  const AttentionInputs<T> inputs = inputs_of(in.tokens);
  const HeadRows<T> y = output_rows(shape, result.y);
  ops<T>().attention_forward(shape, inputs, y, result.logsumexp.data());
  Tokens<T>& g = result.gradient;
  ops<T>().attention_backward(
      shape, {inputs, read_only(y), result.logsumexp.data(), read_only(output_rows(shape, in.dy)), g.query_rows(),
              g.key_rows(), g.value_rows(), in.accumulate});
  return result;
}

// Together, because one of them may be exactly zero.
template <class T>
std::vector<double> all_gradients(const Passes<T>& passes) {
  std::vector<double> all = widened(passes.gradient.query), kv = widened(passes.gradient.kv);
  all.insert(all.end(), kv.begin(), kv.end());
  return all;
}

template <class T>
class FastAttention : public FastOp<T> {};
TYPED_TEST_SUITE(FastAttention, FastTypes);

TYPED_TEST(FastAttention, MatchesReference) {
  using T = TypeParam;
  for (const auto& [name, shape] : k_cases) {
    for (const bool accumulate : {false, true}) {
      if (accumulate && shape.head_dim > 16) continue;  // dear, and nothing new
      SCOPED_TRACE(name);
      const PassInputs<T> in = make_inputs<T>(shape, accumulate);
      const Passes<double> expected = run_passes(shape, in_double(shape, in));
      for_each_target([&, &whole = shape] {
        const Passes<T> fast = run_passes(whole, in);
        for (size_t i = 0; i < fast.logsumexp.size(); ++i)
          ASSERT_TRUE(fast.logsumexp[i] == expected.logsumexp[i] ||
                      std::abs(fast.logsumexp[i] - expected.logsumexp[i]) < 1e-5);
        expect_close(widened(fast.y), expected.y, tolerance_of<T>());
        expect_close(all_gradients(fast), all_gradients(expected), tolerance_of<T>());
      });
    }
  }
}

// The second chunk of queries finds what the first wrote and adds to it, as ranks that share a sequence do.
TYPED_TEST(FastAttention, TwoChunksOfQueriesMakeTheWhole) {
  using T = TypeParam;
  for (const int64_t window : {0, 50}) {
    const AttentionShape whole{2, 150, 150, 0, 4, 2, 16, window};
    PassInputs<T> in = make_inputs<T>(whole, false);
    const Passes<T> at_once = run_passes(whole, in);
    Passes<T> parts{std::vector<T>(in.dy.size()), std::vector<float>(at_once.logsumexp.size()), in.before};
    const AttentionInputs<T> inputs = inputs_of(in.tokens);
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 90}, {90, 60}}) {
      AttentionShape part = whole;
      part.first_query = first, part.queries = count;
      const auto from = [start = first](auto rows) {
        return decltype(rows){rows.data + start * rows.row_stride, rows.row_stride, rows.sequence_stride};
      };
      std::vector<float> logsumexp(static_cast<size_t>(2 * 4 * count));
      const AttentionInputs<T> part_inputs{from(inputs.query), inputs.key, inputs.value};
      const HeadRows<T> y = from(output_rows(whole, parts.y));
      ops<T>().attention_forward(part, part_inputs, y, logsumexp.data());
      ops<T>().attention_backward(
          part, {part_inputs, read_only(y), logsumexp.data(), read_only(from(output_rows(whole, in.dy))),
                 from(parts.gradient.query_rows()), parts.gradient.key_rows(), parts.gradient.value_rows(), first > 0});
    }
    expect_close(widened(parts.y), widened(at_once.y), tolerance_of<T>());
    expect_close(widened(parts.gradient.query), widened(at_once.gradient.query), tolerance_of<T>());
    expect_close(widened(parts.gradient.kv), widened(at_once.gradient.kv), tolerance_of<T>());
  }
}

// Rows of a large tensor go past the caches where they begin at a cache line; one sequence alone stays below that size.
TEST(Bf16Attention, ManySequencesAreAsEachAlone) {
  const AttentionShape all{8, 100, 100, 0, 8, 4, 64, 0};
  const int64_t width = (all.heads + 2 * all.kv_heads) * all.head_dim, out = all.heads * all.head_dim;
  const int64_t tokens = all.batch * all.queries;
  GrowingBuffer<bf16> inputs, dy, y[2], gradient[2];  // on cache lines
  GrowingBuffer<float> logsumexp;
  const auto fill = [](bf16* to, int64_t count, unsigned seed) {
    for (const double value : random_values(count, seed)) *to++ = to_bf16(static_cast<float>(value));
  };
  fill(inputs.at_least(tokens * width), tokens * width, 1);
  fill(dy.at_least(tokens * out), tokens * out, 2);
  const auto run = [&](const AttentionShape& shape, int64_t sequence, int which) {
    const int64_t token = sequence * shape.queries;
    const auto heads = [&](bf16* data, int64_t head) {
      return HeadRows<bf16>{data + token * width + head * shape.head_dim, width, shape.queries * width};
    };
    const auto rows = [&](bf16* data) { return HeadRows<bf16>{data + token * out, out, shape.queries * out}; };
    bf16 *const in = inputs.at_least(0), *const d = gradient[which].at_least(tokens * width);
    float* const sums = logsumexp.at_least(tokens * shape.heads) + token * shape.heads;
    const HeadRows<bf16> result = rows(y[which].at_least(tokens * out));
    const int64_t key = shape.heads, value = key + shape.kv_heads;
    const AttentionInputs<bf16> of{read_only(heads(in, 0)), read_only(heads(in, key)), read_only(heads(in, value))};
    cpu_ops<bf16>().attention_forward(shape, of, result, sums);
    cpu_ops<bf16>().attention_backward(shape, {of, read_only(result), sums, read_only(rows(dy.at_least(0))),
                                               heads(d, 0), heads(d, key), heads(d, value), false});
  };
  run(all, 0, 0);
  AttentionShape one = all;
  one.batch = 1;
  for (int64_t sequence = 0; sequence < all.batch; ++sequence) run(one, sequence, 1);
  const auto same = [](GrowingBuffer<bf16>(&pair)[2], int64_t count) {
    return std::memcmp(pair[0].at_least(count), pair[1].at_least(count), static_cast<size_t>(count) * 2) == 0;
  };
  EXPECT_TRUE(same(y, tokens * out));
  EXPECT_TRUE(same(gradient, tokens * width));
}

// Queries, keys and values of all tokens in one matrix, as products make them, and the gradient of that.
struct WholeMatrix {
  explicit WholeMatrix(const AttentionShape& s)
      : shape(s),
        tokens(s.batch * s.queries),
        width((s.heads + 2 * s.kv_heads) * s.head_dim),
        table_cosine(static_cast<size_t>(s.queries * s.head_dim / 2)),
        table_sine(table_cosine.size()) {
    for (size_t i = 0; i < table_cosine.size(); ++i) {
      table_cosine[i] = static_cast<float>(std::cos(0.1 * static_cast<double>(i)));
      table_sine[i] = static_cast<float>(std::sin(0.1 * static_cast<double>(i)));
    }
  }
  template <class T>
  HeadRows<T> heads(T* data, int64_t head, bool in_blocks) const {
    HeadRows<T> rows{data, width, shape.queries * width, in_blocks};
    rows.data = rows.head(head, shape.head_dim);
    return rows;
  }
  // Row-major, wherever the operation puts it.
  std::vector<double> gradient(bool rotates, bool in_blocks) const {
    const std::vector<bf16> in = narrowed<bf16>(random_values(tokens * width, 1, 1.5));
    const int64_t out = shape.heads * shape.head_dim, key = shape.heads, value = key + shape.kv_heads;
    const std::vector<bf16> dy = narrowed<bf16>(random_values(tokens * out, 2));
    std::vector<bf16> y(dy.size());
    GrowingBuffer<bf16> buffer;  // on a cache line: only whole lines pass the caches by
    bf16* const d = buffer.at_least(tokens * width);
    std::fill_n(d, tokens * width, to_bf16(std::numeric_limits<float>::quiet_NaN()));
    std::vector<float> logsumexp(static_cast<size_t>(tokens * shape.heads));
    const auto rows = [&]<class T>(T* data) { return HeadRows<T>{data, out, shape.queries * out}; };
    const AttentionInputs<bf16> of{heads(in.data(), 0, false), heads(in.data(), key, false),
                                   heads(in.data(), value, false)};
    cpu_ops<bf16>().attention_forward(shape, of, rows(y.data()), logsumexp.data());
    AttentionGradient<bf16> g{of,
                              rows(y.data()).read_only(),
                              logsumexp.data(),
                              rows(dy.data()),
                              heads(d, 0, in_blocks),
                              heads(d, key, in_blocks),
                              heads(d, value, in_blocks)};
    if (rotates) g.rope = {table_cosine.data(), table_sine.data()};
    cpu_ops<bf16>().attention_backward(shape, g);
    const std::vector<double> found = widened(std::vector<bf16>(d, d + tokens * width));
    return in_blocks ? BlockOrder{tokens, width}.rows_of(found) : found;
  }
  void rotate_back(std::vector<double>& gradient) const {
    std::vector<double> cosine(table_cosine.begin(), table_cosine.end()), sine(table_sine.begin(), table_sine.end());
    ops<double>().rope_in_place({shape.batch, shape.queries, shape.heads + shape.kv_heads, shape.head_dim, width},
                                {cosine.data(), sine.data()}, -1, gradient.data());
  }

  AttentionShape shape;
  int64_t tokens, width;
  std::vector<float> table_cosine, table_sine;
};

TEST(Bf16Attention, GradientsAreRotatedBackAndLieInBlocks) {
  if (!cpu_ops<bf16>().finishes_gradients)
    GTEST_SKIP() << "needs a CPU with AMX, whose attention finishes gradients: run it on an Intel Xeon of the fourth "
                    "generation or later";
  // The halves of 96 end within a line of 32; the sequences of 160 together exceed the second-level cache of a thread.
  const AttentionShape shapes[] = {{2, 64, 64, 0, 4, 2, 64, 0},   {1, 320, 320, 0, 2, 1, 128, 0},
                                   {3, 96, 96, 0, 2, 2, 96, 0},   {1, 320, 320, 0, 4, 2, 32, 50},
                                   {2, 71, 71, 0, 4, 2, 20, 0},   {1, 70, 70, 0, 2, 1, 40, 0},
                                   {16, 160, 160, 0, 4, 2, 64, 0}};
  set_thread_count(1);
  for (const AttentionShape& shape : shapes) {
    SCOPED_TRACE(shape.head_dim);
    const WholeMatrix whole(shape);
    std::vector<double> expected = whole.gradient(false, false);
    const bool have_blocks = shape.queries % k_block_side == 0 && shape.head_dim % k_block_side == 0;
    if (have_blocks) {
      EXPECT_EQ(whole.gradient(false, true), expected);
    }
    whole.rotate_back(expected);
    const std::vector<double> rotated = whole.gradient(true, false);
    expect_close(rotated, expected, tolerance_of<bf16>());
    if (have_blocks) {
      EXPECT_EQ(whole.gradient(true, true), rotated);
    }
  }
  set_thread_count(0);
}

TYPED_TEST(FastAttention, LaterKeysMayOutweighAllBefore) {
  using T = TypeParam;
  const AttentionShape shape{1, 200, 200, 0, 1, 1, 16, 0};
  PassInputs<T> in = make_inputs<T>(shape, false);
  for (int64_t t = 100; t < shape.keys; ++t)  // scores rise by hundreds from one tile of keys to the next
    for (int64_t c = 0; c < shape.head_dim; ++c) {
      T& key = in.tokens.kv[static_cast<size_t>(t * in.tokens.kv_row + c)];
      key = narrow<T>(static_cast<float>(static_cast<double>(t) * widened(std::vector<T>{key})[0]));
    }
  const Passes<double> expected = run_passes(shape, in_double(shape, in));
  const Passes<T> fast = run_passes(shape, in);
  expect_close(widened(fast.y), expected.y, tolerance_of<T>());
}

// A largest score that is rounded otherwise than the score itself would leave more than 1, or infinity, of their power.
TYPED_TEST(FastAttention, HugeScoresGiveFiniteOutputs) {
  using T = TypeParam;
  const AttentionShape shape{1, 100, 100, 0, 1, 1, 20, 0};  // its scale is no power of two
  PassInputs<T> in = make_inputs<T>(shape, false);
  for (auto* values : {&in.tokens.query, &in.tokens.kv})
    for (T& value : *values) value = narrow<T>(static_cast<float>(1e4 * widened(std::vector<T>{value})[0]));
  const Passes<T> passes = run_passes(shape, in);
  for (const double y : widened(passes.y)) EXPECT_TRUE(std::isfinite(y));
  if constexpr (std::is_same_v<T, bf16>) {
    for (const double gradient : widened(passes.gradient.query)) EXPECT_TRUE(std::isfinite(gradient));
  }
}

// Threads reuse their buffers, and products leave masked parts unwritten: what is left there must not leak.
TYPED_TEST(FastAttention, WhatAnotherSequenceLeftSpoilsNothing) {
  using T = TypeParam;
  set_thread_count(1);
  for (const auto& [name, shape] : k_cases) {
    SCOPED_TRACE(name);
    const PassInputs<T> in = make_inputs<T>(shape, false);
    PassInputs<T> spoilt = in;
    for (auto* values : {&spoilt.tokens.query, &spoilt.tokens.kv, &spoilt.dy})
      std::fill(values->begin(), values->end(), narrow<T>(std::numeric_limits<float>::quiet_NaN()));
    for_each_target([&, &whole = shape] {
      const Passes<T> before = run_passes(whole, in);
      run_passes(whole, spoilt);
      const Passes<T> after = run_passes(whole, in);
      EXPECT_EQ(widened(before.y), widened(after.y));
      EXPECT_EQ(all_gradients(before), all_gradients(after));
    });
  }
  set_thread_count(0);
}

TYPED_TEST(FastAttention, NanReachesTheOutput) {
  using T = TypeParam;
  const AttentionShape shape{1, 2, 2, 0, 1, 1, 16, 0};
  PassInputs<T> in = make_inputs<T>(shape, false);
  in.tokens.query[3] = narrow<T>(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(widened(run_passes(shape, in).y)[0]));
}

TYPED_TEST(FastAttention, NanOfAKeyReachesTheQueriesThatSeeIt) {
  using T = TypeParam;
  constexpr int64_t k_queries = 150, k_dim = 16, k_spoiled = 51;
  const AttentionShape shape{1, k_queries, k_queries, 0, 1, 1, k_dim, 0};
  PassInputs<T> in = make_inputs<T>(shape, false);
  in.tokens.kv[static_cast<size_t>(k_spoiled * in.tokens.kv_row)] = narrow<T>(std::numeric_limits<float>::quiet_NaN());
  const auto y = widened(run_passes(shape, in).y);
  for (int64_t t = 0; t < k_queries; ++t)
    EXPECT_EQ(std::isnan(y[static_cast<size_t>(t * k_dim)]), t >= k_spoiled) << "query " << t;
}

TEST(GradientTest, Attention) {
  const AttentionShape shapes[] = {
      {2, 6, 6, 0, 4, 2, 4, 0}, {2, 6, 6, 0, 4, 2, 4, 3}, {1, 3, 7, 4, 2, 1, 4, 0}, {1, 3, 7, 4, 2, 1, 4, 2}};
  for (const AttentionShape& shape : shapes) {
    PassInputs<double> in = make_inputs<double>(shape, false);
    const Passes<double> passes = run_passes(shape, in);
    const auto loss = [&] {
      auto y = passes.y;
      auto logsumexp = passes.logsumexp;
      ops<double>().attention_forward(shape, inputs_of(in.tokens), output_rows(shape, y), logsumexp.data());
      return dot(y, in.dy);
    };
    expect_gradient(in.tokens.query, passes.gradient.query, loss);
    auto dkv = passes.gradient.kv;  // what lies between the rows is no gradient
    for (size_t i = 0; i < dkv.size(); ++i)
      if (static_cast<int64_t>(i) % in.tokens.kv_row >= 2 * in.tokens.kv_offset) dkv[i] = 0;
    expect_gradient(in.tokens.kv, dkv, loss);
  }
}

}  // namespace
}  // namespace tprimat::engine

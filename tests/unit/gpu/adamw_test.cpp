#include "ops/reference/adamw.h"

#include "ops/gpu/gpu_ops.h"
#include "unit/gpu/gpu_op_test.h"

namespace tprimat::engine::gpu {
namespace {

// Ranges one after the other: around packs and chunks, an empty one, more than one call's parameters take. Those after
// the first begin between packs.
std::vector<int64_t> range_counts() {
  std::vector<int64_t> counts = {1, 200, 0, 8192, 7, 64, 20'000, 3};
  counts.resize(150, 5);
  return counts;
}
int64_t total_of(const std::vector<int64_t>& counts) {
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  return total;
}

// visit(first, count, weight decay)
template <class Visit>
void for_each_range(const std::vector<int64_t>& counts, const Visit& visit) {
  int64_t first = 0;
  for (const int64_t count : counts) {
    visit(first, count, count > 100 ? 0.1 : 0.0);
    first += count;
  }
}

template <class T>
class GpuAdamw : public GpuOp<T> {};
TYPED_TEST_SUITE(GpuAdamw, GpuTypes);

TYPED_TEST(GpuAdamw, MatchesTheReferenceOverSteps) {
  using T = TypeParam;
  Draws draws;
  SCOPED_TRACE(draws.name());
  const auto counts = range_counts();
  const int64_t total = total_of(counts);
  auto w = draws.of<float>(total), m = std::vector<double>(w.size()), v = m;
  const auto master = on_device<float>(w), first = on_device<float>(m), second = on_device<float>(v);
  auto weight = DeviceVector<T>::poisoned(total);
  constexpr bool k_has_master = !std::is_same_v<T, float>;
  for (int64_t step = 1; step <= 3; ++step) {
    const auto g = draws.of<float>(total);
    const auto gradient = on_device<float>(g);
    std::vector<AdamwRange<double>> expected;
    std::vector<AdamwRange<T>> ranges;
    for_each_range(counts, [&](int64_t at, int64_t count, double decay) {
      expected.push_back({count, decay, g.data() + at, w.data() + at, m.data() + at, v.data() + at, w.data() + at});
      T* to = weight.data() + at;
      if constexpr (!k_has_master) to = master.data() + at;
      ranges.push_back(
          {count, decay, gradient.data() + at, master.data() + at, first.data() + at, second.data() + at, to});
    });
    const AdamwStep s{1e-2, 0.9, 0.95, 1e-8, 0.5, step};
    reference::adamw_update_all<double>(s, expected);
    gpu_ops<T>().adamw(s, ranges);
  }
  expect_each_close(master, w);
  expect_each_close(first, m);
  expect_each_close(second, v);
  if (k_has_master) {
    EXPECT_EQ(weight.download(), narrowed<T>(widened(master.download())));
  }
}

TEST(GpuAdamwRanges, NoneAreNoWork) {
  test_device();
  gpu_ops<bf16>().adamw({}, {});
  gpu_ops<bf16>().adamw_bf16_moments({}, 1, {});
}

// What a run with fewer bytes keeps; `master` stays empty where there is none.
template <class T, class M>
struct CompactState {
  std::vector<float> master;
  std::vector<M> m, v;
  std::vector<T> w;

  std::vector<CompactAdamwRange<T, M>> ranges(const std::vector<int64_t>& counts, const std::vector<float>& gradient) {
    std::vector<CompactAdamwRange<T, M>> result;
    for_each_range(counts, [&](int64_t at, int64_t count, double decay) {
      result.push_back({count, decay, 1000 + at, gradient.data() + at, master.empty() ? nullptr : master.data() + at,
                        m.data() + at, v.data() + at, w.data() + at});
    });
    return result;
  }
};

template <class T, class M>
struct DeviceState {
  explicit DeviceState(const CompactState<T, M>& from) : master(from.master), m(from.m), v(from.v), w(from.w) {}
  DeviceVector<float> master;
  DeviceVector<M> m, v;
  DeviceVector<T> w;

  std::vector<CompactAdamwRange<T, M>> ranges(const std::vector<int64_t>& counts, const float* gradient) {
    std::vector<CompactAdamwRange<T, M>> result;
    for_each_range(counts, [&](int64_t at, int64_t count, double decay) {
      result.push_back({count, decay, 1000 + at, gradient + at, master.size() > 0 ? master.data() + at : nullptr,
                        m.data() + at, v.data() + at, w.data() + at});
    });
    return result;
  }
};

// Bits of T as an integer that grows with the number.
template <class T>
int64_t place_of(T value) {
  using Bits = std::conditional_t<sizeof(T) == 2, int16_t, int32_t>;
  Bits bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits >= 0 ? bits : std::numeric_limits<Bits>::min() - static_cast<int64_t>(bits);
}

// The arithmetic is float's, so that by chance a number lands on the other side: few, and the neighbour, or one within
// the rounding of the terms where these cancel to a number near zero.
constexpr double k_rounding_of_terms = 4e-7;  // some roundings of terms below one, in float

template <class V>
void expect_same_or_neighbours(const DeviceVector<V>& actual, const std::vector<V>& expected) {
  const auto found = actual.download();
  ASSERT_EQ(found.size(), expected.size());
  if constexpr (std::is_same_v<V, float>) {
    expect_each_close(actual, widened(expected));
  } else {
    const auto numbers = widened(found), wanted = widened(expected);
    size_t others = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      if (std::abs(numbers[i] - wanted[i]) > k_rounding_of_terms) {
        ASSERT_LE(std::abs(place_of(found[i]) - place_of(expected[i])), 1)
            << "value " << i << ": " << numbers[i] << " and " << wanted[i];
      }
      others += found[i] == expected[i] ? 0 : 1;
    }
    EXPECT_LE(others, 3 + found.size() / 200);
  }
}

template <class T, class M>
CompactState<T, M> draw_state(Draws& draws, int64_t total, bool has_master) {
  CompactState<T, M> state;
  const auto start = draws.normal(total);
  if (has_master) state.master = narrowed<float>(start);
  state.w = narrowed<T>(start);
  state.m = narrowed<M>(draws.normal(total, 0.1));
  auto squares = draws.normal(total, 0.1);
  for (double& square : squares) square *= square;
  state.v = narrowed<M>(squares);
  return state;
}

template <class T, class M>
auto compact_adamw() {
  if constexpr (std::is_same_v<M, bf16>)
    return gpu_ops<T>().adamw_bf16_moments;
  else
    return gpu_ops<T>().adamw_compact;
}

template <class T, class M>
void compare_compact(bool has_master) {
  SCOPED_TRACE(has_master ? "master" : "no master");
  Draws draws;
  SCOPED_TRACE(draws.name());
  const auto counts = range_counts();
  const int64_t total = total_of(counts);
  auto state = draw_state<T, M>(draws, total, has_master);
  DeviceState<T, M> on_gpu(state), again(state);
  const auto gradient = narrowed<float>(draws.normal(total));
  const DeviceVector<float> g(gradient);
  const AdamwStep step{1e-2, 0.9, 0.95, 1e-8, 0.5, 7};
  reference::adamw_update_compact<T, M>(step, 42, state.ranges(counts, gradient));
  compact_adamw<T, M>()(step, 42, on_gpu.ranges(counts, g.data()));
  compact_adamw<T, M>()(step, 42, again.ranges(counts, g.data()));
  expect_same_or_neighbours(on_gpu.w, state.w);
  expect_same_or_neighbours(on_gpu.m, state.m);
  expect_same_or_neighbours(on_gpu.v, state.v);
  if (has_master) {
    expect_same_or_neighbours(on_gpu.master, state.master);
  }
  expect_same_bits(on_gpu.w, again.w);
  expect_same_bits(on_gpu.m, again.m);
  expect_same_bits(on_gpu.v, again.v);
}

TYPED_TEST(GpuAdamw, CompactMatchesTheReferenceAndRepeats) {
  using T = TypeParam;
  for (const bool has_master : {true, false}) {
    compare_compact<T, float>(has_master);
    compare_compact<T, bf16>(has_master);
  }
}

// The same parameters as one range and as many give the same bits.
TEST(GpuAdamwRanges, CutsDoNotChangeCompactResults) {
  Draws draws;
  SCOPED_TRACE(draws.name());
  const auto state = draw_state<bf16, bf16>(draws, 10'000, false);
  const DeviceVector<float> g(narrowed<float>(draws.normal(10'000)));
  DeviceState<bf16, bf16> whole(state), cut(state);
  const auto range_of = [&](DeviceState<bf16, bf16>& of, int64_t at, int64_t count) {
    return CompactAdamwRange<bf16, bf16>{
        count, 0.1, at, g.data() + at, nullptr, of.m.data() + at, of.v.data() + at, of.w.data() + at};
  };
  const AdamwStep step{1e-2, 0.9, 0.95, 1e-8, 1.0, 3};
  const std::vector<CompactAdamwRange<bf16, bf16>> one = {range_of(whole, 0, 10'000)};
  gpu_ops<bf16>().adamw_bf16_moments(step, 9, one);
  const std::vector<CompactAdamwRange<bf16, bf16>> several = {range_of(cut, 0, 1), range_of(cut, 1, 4099),
                                                              range_of(cut, 4100, 5900)};
  gpu_ops<bf16>().adamw_bf16_moments(step, 9, several);
  expect_same_bits(whole.w, cut.w);
  expect_same_bits(whole.m, cut.m);
  expect_same_bits(whole.v, cut.v);
  DeviceState<bf16, bf16> other_seed(state);
  const std::vector<CompactAdamwRange<bf16, bf16>> other = {range_of(other_seed, 0, 10'000)};
  gpu_ops<bf16>().adamw_bf16_moments(step, 10, other);
  EXPECT_NE(other_seed.w.download(), whole.w.download());
}

}  // namespace
}  // namespace tprimat::engine::gpu

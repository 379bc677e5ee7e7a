#include "comm/messages/reduce.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "base/check.h"

namespace tprimat::engine {
namespace {

constexpr int64_t k_strip = 512;  // elements whose accumulators stay in the first-level cache

template <class T>
using Accumulator = std::conditional_t<std::is_integral_v<T>, T, Accum<T>>;

template <class T>
Accumulator<T> load(const T& value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return widen(value);
}

template <class T>
T store(Accumulator<T> value) {
  if constexpr (std::is_integral_v<T>)
    return value;
  else
    return narrow<T>(value);
}

struct Add {
  template <class A>
  static A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>)  // wraps
      return static_cast<A>(static_cast<std::make_unsigned_t<A>>(a) + static_cast<std::make_unsigned_t<A>>(b));
    else
      return a + b;
  }
};

struct Greater {
  template <class A>
  static A apply(A a, A b) {
    if constexpr (std::is_integral_v<A>)
      return b > a ? b : a;
    else
      return b > a || b != b ? b : a;
  }
};

template <class T, class Combine>
void reduce_strip(std::span<const T* const> sources, T* to, int64_t count) {
  Accumulator<T> total[k_strip];
  for (int64_t i = 0; i < count; ++i) total[i] = load(sources[0][i]);
  for (const T* source : sources.subspan(1))
    for (int64_t i = 0; i < count; ++i) total[i] = Combine::apply(total[i], load(source[i]));
  for (int64_t i = 0; i < count; ++i) to[i] = store<T>(total[i]);
}

template <class T, class Combine>
void reduce_all(std::span<const std::byte* const> sources, std::byte* to, int64_t count) {
  std::vector<const T*> at(sources.size());
  for (int64_t begin = 0; begin < count; begin += k_strip) {
    for (size_t i = 0; i < sources.size(); ++i) at[i] = reinterpret_cast<const T*>(sources[i]) + begin;
    reduce_strip<T, Combine>(at, reinterpret_cast<T*>(to) + begin, std::min(k_strip, count - begin));
  }
}

template <class Combine>
auto reducer_of(ElementType type) {
  switch (type) {
    case ElementType::float32: return &reduce_all<float, Combine>;
    case ElementType::float64: return &reduce_all<double, Combine>;
    case ElementType::bfloat16: return &reduce_all<bf16, Combine>;
    case ElementType::float16: return &reduce_all<f16, Combine>;
    case ElementType::int32: return &reduce_all<int32_t, Combine>;
    case ElementType::int64: return &reduce_all<int64_t, Combine>;
    case ElementType::bytes: break;
  }
  CHECK(!"a type with a sum");
}

}  // namespace

void reduce_in_order(std::span<const std::byte* const> sources, std::byte* to, int64_t count, ElementType type,
                     Reduction reduction) {
  CHECK(!sources.empty());
  const auto reduce = reduction == Reduction::sum ? reducer_of<Add>(type) : reducer_of<Greater>(type);
  reduce(sources, to, count);
}

}  // namespace tprimat::engine

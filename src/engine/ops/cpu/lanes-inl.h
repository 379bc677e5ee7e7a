// Per-target include (no #pragma once): vectors of float, loaded from and stored to float, bf16 or f16 arrays.
#if defined(TPRIMAT_OPS_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TPRIMAT_OPS_CPU_LANES_INL_H_
#undef TPRIMAT_OPS_CPU_LANES_INL_H_
#else
#define TPRIMAT_OPS_CPU_LANES_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "device/element.h"
#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/instruction_sets.h"
#include "ops/cpu/large_results.h"

HWY_BEFORE_NAMESPACE();
namespace tprimat::engine {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using OneFloat = hn::CappedTag<float, 1>;

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] D d, const bf16* from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const auto bits = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, float* to) {
  hn::StoreU(value, d, to);
}

template <class D>
HWY_INLINE void store_exactly(D d, hn::Vec<D> value, float* to) {
  store(d, value, to);
}

// Round to nearest even, as to_bf16; a NaN keeps its upper bits, so it stays a NaN unless its payload is in the lowest
// 16 bits only, which arithmetic does not produce.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> rounded_to_bf16([[maybe_unused]] D d, hn::Vec<D> value) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const hn::Rebind<int32_t, D> di32;
  const auto bits = hn::BitCast(d32, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFFu))));
  const auto kept = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(value)), hn::ShiftRight<16>(bits), rounded);
  return hn::DemoteTo(d16, hn::BitCast(di32, kept));
}
template <class D>
HWY_INLINE void store_exactly([[maybe_unused]] D d, hn::Vec<D> value, bf16* to) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(rounded_to_bf16(d, value), d16, reinterpret_cast<uint16_t*>(to));
}

// The same, but numbers below 2^-126 may become 0: the instruction for it takes them for that.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> quickly_rounded_to_bf16(D d, hn::Vec<D> value) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if constexpr (hn::MaxLanes(d) == 16)
    if (k_rounds_to_bf16) {
      hn::Vec<hn::Rebind<uint16_t, D>> rounded;  // assembly: not every CPU of this target has the instruction
      asm("vcvtneps2bf16 %1, %0" : "=v"(rounded.raw) : "v"(value.raw));
      return rounded;
    }
#endif
  return rounded_to_bf16(d, value);
}
template <class D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> value, bf16* to) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(quickly_rounded_to_bf16(d, value), d16, reinterpret_cast<uint16_t*>(to));
}

// Whether conversions between float and IEEE binary16 are instructions here; Highway's replacement for older x86 CPUs
// does not round.
#undef TPRIMAT_HAS_F16
#if (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2) || HWY_TARGET == HWY_NEON
#define TPRIMAT_HAS_F16 1
#else
#define TPRIMAT_HAS_F16 0
#endif

#if TPRIMAT_HAS_F16
template <class D>
HWY_INLINE hn::Vec<D> load([[maybe_unused]] D d, const f16* from) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> df16;
  return hn::PromoteTo(d, hn::BitCast(df16, hn::LoadU(d16, reinterpret_cast<const uint16_t*>(from))));
}
template <class D>
HWY_INLINE void store([[maybe_unused]] D d, hn::Vec<D> value, f16* to) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<hwy::float16_t, D> df16;
  hn::StoreU(hn::BitCast(d16, hn::DemoteTo(df16, value)), d16, reinterpret_cast<uint16_t*>(to));
}
#else
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const f16* from) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = to_float(from[i]);
  return hn::Load(d, lanes);
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> value, f16* to) {
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(value, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) to[i] = to_f16(lanes[i]);
}
#endif

template <class D>
HWY_INLINE void store_exactly(D d, hn::Vec<D> value, f16* to) {
  store(d, value, to);
}

// Stores past the caches, of whole vectors that `to` is aligned for; hwy::FlushStream() comes after the last. Vectors
// below 128 bits, single lanes and f16 go the ordinary way.
template <class D, class T>
HWY_INLINE void stream(D d, hn::Vec<D> value, T* to) {
  if constexpr (std::is_same_v<T, float> && hn::MaxLanes(d) >= 4)
    hn::Stream(value, d, to);
  else if constexpr (std::is_same_v<T, bf16> && hn::MaxLanes(d) >= 8)
    hn::Stream(quickly_rounded_to_bf16(d, value), hn::Rebind<uint16_t, D>(), reinterpret_cast<uint16_t*>(to));
  else
    store(d, value, to);
}
template <class D>
HWY_INLINE void stream_exactly(D d, hn::Vec<D> value, bf16* to) {
  if constexpr (hn::MaxLanes(d) >= 8)
    hn::Stream(rounded_to_bf16(d, value), hn::Rebind<uint16_t, D>(), reinterpret_cast<uint16_t*>(to));
  else
    store_exactly(d, value, to);
}

template <bool Streams, class D, class T>
HWY_INLINE void put(D d, hn::Vec<D> value, T* to) {
  if constexpr (Streams)
    stream(d, value, to);
  else
    store(d, value, to);
}

// Whether whole vectors can be stored past the caches from here on.
template <class T>
bool is_aligned(const T* to) {
  constexpr uintptr_t k_longest_vector = 64;
  return reinterpret_cast<uintptr_t>(to) % k_longest_vector == 0;
}
// write(streams, row, element at which it begins) for the rows of a result that is kept for the backward pass;
// `streams` is true_type where they are to be stored past the caches.
template <class T, class Write>
void write_rows(const T* to, int64_t rows, int64_t cols, const Write& write) {
  const bool streams =
      has_amx() && is_large(rows * cols * static_cast<int64_t>(sizeof(T))) && is_aligned(to) && is_aligned(to + cols);
  parallel_ranges(rows, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t row = begin; row < end; ++row)
      if (streams)
        write(std::true_type(), row, row * cols);
      else
        write(std::false_type(), row, row * cols);
    if (streams) hwy::FlushStream();
  });
}

// Memory that is visited in order and is seldom in a cache: the hardware's prefetcher begins anew with each page, so
// what comes is fetched to the second-level cache (docs/performance.md). A prefetch past the last element does not
// fault.
template <class D, class T>
HWY_INLINE hn::Vec<D> load_in_order(D d, const T* from) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // others were not measured
  constexpr int64_t k_bytes_ahead = 2048;
  __builtin_prefetch(reinterpret_cast<const char*>(from) + k_bytes_ahead, 0, 2);
#endif
  return load(d, from);
}

// Assembly: compilers move the builtin function's prefetches together, which costs what they gain. A prefetch past the
// last element does not fault.
HWY_INLINE void fetch([[maybe_unused]] const void* from) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // others were not measured
  asm volatile("prefetcht0 (%0)" ::"r"(from));
#endif
}

// Four elements of four lines become four lines of four elements.
HWY_INLINE void transpose4(const float* from, int64_t line, float* to, int64_t width) {
  const hn::CappedTag<float, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> d64;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + line), c = hn::LoadU(d, from + 2 * line),
             e = hn::LoadU(d, from + 3 * line);
  const auto ab_low = hn::BitCast(d64, hn::InterleaveLower(d, a, b)),
             ab_high = hn::BitCast(d64, hn::InterleaveUpper(d, a, b)),
             ce_low = hn::BitCast(d64, hn::InterleaveLower(d, c, e)),
             ce_high = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ce_low)), d, to + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ce_high)), d, to + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ce_high)), d, to + 3 * width);
}

// e^x for x up to 88, with a relative error of at most 1.2e-7: x = n·ln 2 + r, and a polynomial of degree 6 in r that
// interpolates e^r at Chebyshev's nodes. 0 below −87. NaN stays NaN unless its payload is in the lowest 9 bits, which
// arithmetic does not produce.
template <class D>
HWY_INLINE hn::Vec<D> exponential(D d, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> bits;
  const auto constant = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  // A sum in which the bits below the point fall away: n is its lowest bits.
  const auto shift = constant(12582912.0f), shifted = hn::MulAdd(x, constant(1.44269504f), shift);
  const auto n = hn::Sub(shifted, shift);
  const auto r = hn::NegMulAdd(n, constant(-2.12194440e-4f), hn::NegMulAdd(n, constant(0.693359375f), x));
  auto power = constant(1.3941119e-3f);
  for (const float coefficient : {8.375134e-3f, 4.166635e-2f, 0.16666415f, 0.5f, 1.0f, 1.0f})
    power = hn::MulAdd(power, r, constant(coefficient));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(bits, shifted));
  return hn::IfThenZeroElse(hn::Lt(x, constant(-87.0f)), hn::BitCast(d, hn::Add(hn::BitCast(bits, power), exponent)));
}

// 1 / x for positive x, accurate enough that rounding to T decides the error.
template <class T, class D>
HWY_INLINE hn::Vec<D> reciprocal(D d, hn::Vec<D> x) {
  // A single lane would be approximated by another instruction, with another error.
  if constexpr (sizeof(T) == sizeof(float) || hn::MaxLanes(d) == 1) return hn::Div(hn::Set(d, 1.0f), x);
  const auto near = hn::ApproximateReciprocal(x);
  return hn::Mul(near, hn::NegMulAdd(near, x, hn::Set(d, 2.0f)));  // one of Newton's steps
}

// body(d, i) over [begin, end): whole vectors first, then single lanes.
template <class Body>
HWY_INLINE void for_lanes(int64_t begin, int64_t end, const Body& body) {
  const Floats d;
  const OneFloat one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) body(d, i);
  for (; i < end; ++i) body(one, i);
}

// The same over a whole number of vectors.
template <class Body>
HWY_INLINE void for_whole_lanes(int64_t begin, int64_t end, const Body& body) {
  const Floats d;
  for (int64_t i = begin; i < end; i += static_cast<int64_t>(hn::Lanes(d))) body(d, i);
}
template <class Body>
HWY_INLINE void for_whole_lanes(int64_t count, const Body& body) {
  for_whole_lanes(0, count, body);
}

// Sum of term(d, i) over [begin, end), in a fixed order.
template <class Term>
HWY_INLINE float sum_lanes(int64_t begin, int64_t end, const Term& term) {
  const Floats d;
  const OneFloat one;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum_a = hn::Zero(d), sum_b = hn::Zero(d);
  int64_t i = begin;
  for (; i + 2 * lanes <= end; i += 2 * lanes) {
    sum_a = hn::Add(sum_a, term(d, i));
    sum_b = hn::Add(sum_b, term(d, i + lanes));
  }
  for (; i + lanes <= end; i += lanes) sum_a = hn::Add(sum_a, term(d, i));
  float total = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum_a, sum_b)));
  for (; i < end; ++i) total += hn::GetLane(term(one, i));
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace tprimat::engine
HWY_AFTER_NAMESPACE();

#endif

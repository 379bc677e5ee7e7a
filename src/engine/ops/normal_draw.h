#pragma once

#include <bit>
#include <cstdint>
#include <numbers>

#include "ops/stochastic_rounding.h"

// Normally distributed initial weights with the same bits on every processor and GPU, and for any number of threads and
// ranks: value i of a weight depends on its stream and on i alone. Logarithm, cosine and sine are computed here from
// additions, products, quotients and square roots, which IEEE 754 rounds alike everywhere; libraries' own differ in
// the last bits. Called on GPUs too.
namespace tprimat::engine {

// A block of a row-major weight of `whole_cols` columns: its first `cols` columns from element `first` on, row by row.
struct NormalDraw {
  double mean = 0.0, stddev = 0.0;  // stddev 0: the mean
  uint64_t stream = 0;              // picks the numbers
  int64_t first = 0;                // index into the whole weight of the block's first element
  int64_t cols = 1, whole_cols = 1;
  int64_t skip = 0;  // elements of the block that come before the first that is drawn

  // Index into the whole weight of drawn element `i`.
  constexpr int64_t whole_index(int64_t i) const {
    const int64_t element = skip + i;
    return first + element / cols * whole_cols + element % cols;
  }
};

template <class T>
struct NormalDrawOps {
  // to[i], rounded to T, for i < count.
  void (*draw_normal)(int64_t count, const NormalDraw& draw, T* to);
  void (*draw_normal_wide)(int64_t count, const NormalDraw& draw, Accum<T>* to);
};

// Products and sums that no compiler fuses into one operation, which would round once instead of twice. Where neither
// intrinsics nor a pragma say so, the source is compiled with -ffp-contract=off.
constexpr double exact_product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#elif defined(__clang__)
#pragma clang fp contract(off)
  return a * b;
#else
  return a * b;
#endif
}
constexpr double exact_sum(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#elif defined(__clang__)
#pragma clang fp contract(off)
  return a + b;
#else
  return a + b;
#endif
}

// c[0] + c[1]·x + c[2]·x² + ..., by Horner's rule.
template <int Count>
constexpr double polynomial(double x, const double (&c)[Count]) {
  double sum = c[Count - 1];
  for (int i = Count - 2; i >= 0; --i) sum = exact_sum(exact_product(sum, x), c[i]);
  return sum;
}

// ln u for 0 < u <= 1, u a normal number, to about 1e-16 of it: u = m·2^e with 1/√2 <= m < √2, s = (m − 1)/(m + 1),
// ln m = 2·(s + s³/3 + s⁵/5 + ...).
constexpr double natural_logarithm(double u) {
  constexpr double k_series[] = {1.0,        1.0 / 3.0,  1.0 / 5.0,  1.0 / 7.0,  1.0 / 9.0, 1.0 / 11.0,
                                 1.0 / 13.0, 1.0 / 15.0, 1.0 / 17.0, 1.0 / 19.0, 1.0 / 21.0};
  constexpr uint64_t k_fraction = 0x000FFFFFFFFFFFFFu, k_one = 0x3FF0000000000000u;
  const auto bits = std::bit_cast<uint64_t>(u);
  auto exponent = static_cast<double>(static_cast<int64_t>(bits >> 52) - 1023);
  double m = std::bit_cast<double>((bits & k_fraction) | k_one);
  if (m >= std::numbers::sqrt2) m = exact_product(m, 0.5), exponent = exact_sum(exponent, 1.0);
  const double s = exact_sum(m, -1.0) / exact_sum(m, 1.0);
  const double twice = exact_product(2.0, exact_product(s, polynomial(exact_product(s, s), k_series)));
  return exact_sum(exact_product(exponent, std::numbers::ln2), twice);
}

// cos 2πv for 0 <= v <= 1: the nearest quarter turn is taken off, and the rest, at most an eighth, goes into the series
// of cosine or sine.
constexpr double cosine_of_turn(double v) {
  constexpr double k_cosine[] = {1.0,
                                 -1.0 / 2,
                                 1.0 / 24,
                                 -1.0 / 720,
                                 1.0 / 40320,
                                 -1.0 / 3628800,
                                 1.0 / 479001600,
                                 -1.0 / 87178291200,
                                 1.0 / 20922789888000};
  constexpr double k_sine[] = {1.0,
                               -1.0 / 6,
                               1.0 / 120,
                               -1.0 / 5040,
                               1.0 / 362880,
                               -1.0 / 39916800,
                               1.0 / 6227020800,
                               -1.0 / 1307674368000,
                               1.0 / 355687428096000};
  const auto quarter = static_cast<int>(exact_sum(exact_product(v, 4.0), 0.5));
  const double rest = exact_sum(v, exact_product(static_cast<double>(quarter), -0.25));  // exact
  const double x = exact_product(2.0 * std::numbers::pi, rest), x2 = exact_product(x, x);
  const bool odd = (quarter & 1) != 0;  // sine; chosen term by term, since a branch on random numbers costs more
  double sum = odd ? k_sine[8] : k_cosine[8];
  for (int i = 7; i >= 0; --i) sum = exact_sum(exact_product(sum, x2), odd ? k_sine[i] : k_cosine[i]);
  const double sign = quarter == 1 || quarter == 2 ? -1.0 : 1.0;
  return exact_product(exact_product(sign, odd ? x : 1.0), sum);
}

// Number `index` of a stream, in (0, 1]: 53 random bits.
constexpr double random_unit(uint64_t stream, uint64_t index) {
  const uint64_t bits = mix_bits(stream + index + 0x9E3779B97F4A7C15u);
  return exact_product(static_cast<double>((bits >> 11) + 1), 0x1.0p-53);
}

// mean + stddev·√(−2 ln u)·cos 2πv (Box and Muller, 1958), with u and v numbers 2·index and 2·index + 1 of the stream.
// root(x): √x rounded to the nearest, by the name that the device has for it.
template <class Root>
constexpr double normal_value(const NormalDraw& draw, int64_t index, const Root& root) {
  if (draw.stddev == 0.0) return draw.mean;
  const auto number = 2 * static_cast<uint64_t>(index);
  const double u = random_unit(draw.stream, number), v = random_unit(draw.stream, number + 1);
  const double radius = root(exact_product(-2.0, natural_logarithm(u)));
  return exact_sum(draw.mean, exact_product(exact_product(draw.stddev, radius), cosine_of_turn(v)));
}

}  // namespace tprimat::engine

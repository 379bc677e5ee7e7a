#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "ops/rope_table.h"

namespace tprimat::engine {
namespace {

// The factor by which llama3 multiplies a frequency that makes `turns` turns in original_max_position_embeddings
// tokens.
double llama3_share(const RopeScaling& s, double turns) {
  if (turns < s.low_freq_factor) return 1.0 / s.factor;
  if (turns > s.high_freq_factor) return 1.0;
  const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1.0 - kept) / s.factor + kept;
}

// The channel whose frequency makes `turns` turns in original_max_position_embeddings tokens (arXiv 2309.00071,
// section 3.2, solved for the channel); not a whole number.
double yarn_channel(const RopeFrequencies& f, double turns) {
  const double length = static_cast<double>(f.stretch->original_max_position_embeddings);
  return static_cast<double>(f.head_dim) * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(f.theta));
}

double yarn_share(const RopeFrequencies& f, int64_t channel) {
  const RopeScaling& s = *f.stretch;
  const double first = std::max(std::floor(yarn_channel(f, s.beta_fast)), 0.0);
  double last = std::min(std::ceil(yarn_channel(f, s.beta_slow)), static_cast<double>(f.head_dim - 1));
  if (first == last) last += 0.001;
  const double stretched = std::clamp((static_cast<double>(channel) - first) / (last - first), 0.0, 1.0);
  return stretched / s.factor + (1.0 - stretched);
}

double share_of(const RopeFrequencies& f, int64_t channel, double radians_per_token) {
  switch (f.stretch->type) {
    case RopeScalingKind::linear: return 1.0 / f.stretch->factor;
    case RopeScalingKind::llama3:
      return llama3_share(*f.stretch, static_cast<double>(f.stretch->original_max_position_embeddings) *
                                          radians_per_token / (2 * std::numbers::pi));
    case RopeScalingKind::yarn: return yarn_share(f, channel);
  }
  CHECK(!"every kind is handled");
}

}  // namespace

std::vector<double> RopeFrequencies::radians_per_token() const {
  CHECK(head_dim % 2 == 0);
  std::vector<double> radians(static_cast<size_t>(head_dim / 2));
  for (int64_t i = 0; i < head_dim / 2; ++i) {
    const double plain = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim));
    radians[static_cast<size_t>(i)] = stretch ? plain * share_of(*this, i, plain) : plain;
  }
  return radians;
}

double RopeFrequencies::amplitude() const {
  if (!stretch || stretch->type != RopeScalingKind::yarn) return 1.0;
  return stretch->factor > 1.0 ? 0.1 * std::log(stretch->factor) + 1.0 : 1.0;
}

template <class A>
void fill_rope_table(const RopeFrequencies& frequencies, const int64_t* positions, int64_t count,
                     const RopeTable<A>& table) {
  const std::vector<double> radians = frequencies.radians_per_token();
  const double amplitude = frequencies.amplitude();
  const auto half = static_cast<int64_t>(radians.size());
  for (int64_t t = 0; t < count; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(positions[t]) * radians[static_cast<size_t>(i)];
      table.cosine[t * half + i] = static_cast<A>(amplitude * std::cos(angle));
      table.sine[t * half + i] = static_cast<A>(amplitude * std::sin(angle));
    }
  }
}

template void fill_rope_table(const RopeFrequencies&, const int64_t*, int64_t, const RopeTable<float>&);
template void fill_rope_table(const RopeFrequencies&, const int64_t*, int64_t, const RopeTable<double>&);

}  // namespace tprimat::engine

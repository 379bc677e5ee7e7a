#include "ops/gpu/gpu_ops.h"
#include "ops/gpu/ranges.h"

namespace tprimat::engine::gpu {
namespace {

// One parameter on its way: what the formulas of ops/adamw.h make of it.
struct AdamwValue {
  float m, v, w;

  __device__ void update(const AdamwFactors& f, float gradient, float keep) {
    const float g = gradient * f.scale;
    m = fmaf(f.rest1, g, f.beta1 * m);
    v = fmaf(f.rest2, g * g, f.beta2 * v);
    w = fmaf(w, keep, -(m * f.rate / fmaf(sqrtf(v), f.root, f.epsilon)));
  }
};

__device__ inline float kept_by_decay(const AdamwFactors& f, double weight_decay) {
  return static_cast<float>(1.0 - f.learning_rate * weight_decay);
}

template <class T>
__global__ void __launch_bounds__(k_block) adamw_ranges(RangeTable<AdamwRange<T>> table, AdamwFactors factors) {
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const PlacedRange<AdamwRange<T>> placed = table.of_chunk(chunk);
    const AdamwRange<T>& range = placed.range;
    const float keep = kept_by_decay(factors, range.weight_decay);
    visit_range_chunk(placed, chunk, [&](auto width, int64_t i) {
      constexpr int n = decltype(width)::value;
      const Chunk<float, n> gradient = read_chunk<n>(range.gradient + i);
      Chunk<float, n> m = read_chunk<n>(range.first_moment + i), v = read_chunk<n>(range.second_moment + i);
      Chunk<float, n> master = read_chunk<n>(range.master + i);
      Chunk<T, n> weight;
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) {
        AdamwValue value{m.values[j], v.values[j], master.values[j]};
        value.update(factors, gradient.values[j], keep);
        m.values[j] = value.m;
        v.values[j] = value.v;
        master.values[j] = value.w;
        weight.values[j] = store<T>(value.w);
      }
      write_chunk<n>(range.first_moment + i, m);
      write_chunk<n>(range.second_moment + i, v);
      write_chunk<n>(range.master + i, master);
      if (static_cast<const void*>(range.weight) != range.master) write_chunk<n>(range.weight + i, weight);
    });
  }
}

template <class T, class M>
__global__ void __launch_bounds__(k_block)
    compact_adamw_ranges(RangeTable<CompactAdamwRange<T, M>> table, AdamwFactors factors, uint64_t key) {
  for (int64_t chunk = blockIdx.x; chunk < table.chunks; chunk += gridDim.x) {
    const PlacedRange<CompactAdamwRange<T, M>> placed = table.of_chunk(chunk);
    const CompactAdamwRange<T, M>& range = placed.range;
    const float keep = kept_by_decay(factors, range.weight_decay);
    const bool has_master = range.master != nullptr;
    visit_range_chunk(placed, chunk, [&](auto width, int64_t i) {
      constexpr int n = decltype(width)::value;
      const Chunk<float, n> gradient = read_chunk<n>(range.gradient + i);
      Chunk<M, n> m = read_chunk<n>(range.first_moment + i), v = read_chunk<n>(range.second_moment + i);
      Chunk<T, n> weight{};
      Chunk<float, n> master{};
      if (has_master)
        master = read_chunk<n>(range.master + i);
      else
        weight = read_chunk<n>(range.weight + i);
      TPRIMAT_UNROLL
      for (int j = 0; j < n; ++j) {
        const uint64_t bits = rounding_bits(key, range.first_value + i + j);
        AdamwValue value{load(m.values[j]), load(v.values[j]), has_master ? master.values[j] : load(weight.values[j])};
        value.update(factors, gradient.values[j], keep);
        m.values[j] = round_by_chance<M>(value.m, static_cast<uint32_t>(bits >> 16) & 0xFFFFu);
        v.values[j] = round_by_chance<M>(value.v, static_cast<uint32_t>(bits >> 32) & 0xFFFFu);
        master.values[j] = value.w;
        weight.values[j] =
            has_master ? store<T>(value.w) : round_by_chance<T>(value.w, static_cast<uint32_t>(bits) & 0xFFFFu);
      }
      write_chunk<n>(range.first_moment + i, m);
      write_chunk<n>(range.second_moment + i, v);
      if (has_master) write_chunk<n>(range.master + i, master);
      if (static_cast<const void*>(range.weight) != range.master) write_chunk<n>(range.weight + i, weight);
    });
  }
}

template <class Range>
bool reads_four_at_once(const Range& range) {
  return fits_chunks(range.gradient, 4) && fits_chunks(range.master, 4) && fits_chunks(range.first_moment, 4) &&
         fits_chunks(range.second_moment, 4) && fits_chunks(range.weight, 4);
}

template <class T>
void adamw(const AdamwStep& step, std::span<const AdamwRange<T>> ranges) {
  const auto table = place_ranges(ranges, 0, reads_four_at_once<AdamwRange<T>>);
  if (table.chunks > 0) launch(range_launch(table), adamw_ranges<T>, table, AdamwFactors(step));
}

template <class T, class M>
void adamw_compact(const AdamwStep& step, uint64_t seed, std::span<const CompactAdamwRange<T, M>> ranges) {
  const auto table = place_ranges(ranges, 0, reads_four_at_once<CompactAdamwRange<T, M>>);
  if (table.chunks > 0)
    launch(range_launch(table), compact_adamw_ranges<T, M>, table, AdamwFactors(step), rounding_key(seed, step.step));
}

}  // namespace

void set_ops(OpsByFormat<AdamwOps>& ops) {
  ops.set_fast([]<class T>(AdamwOps<T>& fast) { fast = {adamw<T>}; });
}

void set_ops(OpsByFormat<CompactAdamwOps>& ops) {
  ops.set_fast([]<class T>(CompactAdamwOps<T>& fast) { fast = {adamw_compact<T, float>, adamw_compact<T, bf16>}; });
}

}  // namespace tprimat::engine::gpu

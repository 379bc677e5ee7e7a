#include <cmath>

#include "base/check.h"
#include "ops/cpu/amx_attention.h"
#include "ops/cpu/amx_attention_strips.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine::amx {
namespace {

// Which powers of two stand for the scores. `near`: of the score less the largest among the first keys, which costs
// less and is right as long as no power grows too large; `running`: less the largest so far.
enum class Powers : uint8_t { near, running };

constexpr int64_t k_block_keys = 64;
// Of Powers::near: a lane's sum of powers, and the exponent that is taken from all. NaN exceeds both.
constexpr float k_max_sum = 0x1p16f, k_max_exponent = 0x1p12f;

// 32 queries of one head.
struct QueryStrip {
  int64_t head, query;         // the first one
  int64_t count;               // of queries
  int64_t first_key, end_key;  // whole strips of keys
};

// Some keys that a strip of queries may see, a multiple of 32.
struct KeyBlock {
  int64_t key, count;
};

// Of 32 queries, over the keys so far.
struct StripSums {
  // What is subtracted from scores: Powers::near: times scale·log2 e; Powers::running: as they are.
  alignas(64) float taken[k_strip];
  alignas(64) float sums[k_strip][k_lanes];  // of powers, a vector for each query
  float to_scaled;                           // makes `taken` a scaled score, as logsumexp is
};

using VisibleKeys = std::array<uint64_t, k_strip>;  // by query

template <bool IsPartial>
TPRIMAT_INLINE_AVX512_BF16 inline float largest_score(const float* scores, int64_t keys, uint64_t visible) {
  __m512 top = _mm512_set1_ps(k_minus_infinity);
  for (int64_t c = 0; c < keys; c += k_lanes) {
    const __m512 larger = _mm512_max_ps(top, _mm512_load_ps(scores + c));
    top = IsPartial ? _mm512_mask_mov_ps(top, lanes_of(visible, c), larger) : larger;
  }
  return _mm512_reduce_max_ps(top);
}

// The scores of one query, and what is taken from them.
struct ScoreRow {
  const float* scores;
  int64_t keys;
  uint64_t visible;
  float scale, taken;
};

// powers ← 2^(scale·score − taken), 0 for keys out of sight; returns sums + theirs. Powers::running:
// 2^(scale·(score − taken)), where the largest gives 2^0, however large it is.
template <Powers Kind, bool IsPartial>
TPRIMAT_INLINE_AVX512_BF16 inline __m512 raise_scores(const ScoreRow& row, __m512 sums, bf16* powers) {
  const __m512 scale = _mm512_set1_ps(row.scale), taken = _mm512_set1_ps(row.taken);
  const auto power_of = [&](int64_t c) __attribute__((always_inline)) TPRIMAT_AVX512_BF16 {
    const __m512 score = _mm512_load_ps(row.scores + c);
    const __m512 power = power_of_two(Kind == Powers::near ? _mm512_fmsub_ps(score, scale, taken)
                                                           : _mm512_mul_ps(_mm512_sub_ps(score, taken), scale));
    return IsPartial ? _mm512_maskz_mov_ps(lanes_of(row.visible, c), power) : power;
  };
  for (int64_t c = 0; c < row.keys; c += 2 * k_lanes) {
    const __m512 low = power_of(c), high = power_of(c + k_lanes);
    sums = _mm512_add_ps(sums, _mm512_add_ps(low, high));
    _mm512_store_si512(powers + c, narrow_both(low, high));
  }
  return sums;
}

class ForwardGroup {
 public:
  ForwardGroup(const AttentionTiles& t, const HeadGroup& group, const AttentionInputs<bf16>& inputs,
               const HeadRows<bf16>& y, float* logsumexp)
      : t_(t), group_(group), inputs_(inputs), y_(y), logsumexp_(logsumexp), streams_(is_large(tensor_bytes(t, y))) {
    TileScratch& scratch = thread_scratch(t);
    const int64_t whole = whole_strips(t.keys) * t.width;
    keys_ = take_bf16(scratch, whole), values_ = take_bf16(scratch, whole);
    queries_ = take_bf16(scratch, k_strip * t.width);
    scores_ = scratch.take(k_strip * k_block_keys), powers_ = take_bf16(scratch, k_strip * k_block_keys);
    output_ = scratch.take(k_strip * t.width);
  }

  void run() {
    const TileRegisters registers;
    const int64_t heads = t_.shape.heads / t_.shape.kv_heads;
    for (int64_t head = group_.kv_head * heads; head < (group_.kv_head + 1) * heads; ++head)
      for (int64_t query = 0; query < t_.shape.queries; query += k_strip) {
        const QueryStrip strip = strip_at(head, query);
        pack_rows(t_, strip_rows(t_, inputs_.query, group_.batch, {head, query, strip.count}), queries_);
        if (!attend<Powers::near>(strip)) attend<Powers::running>(strip);
        put_output(strip);
      }
    _mm_sfence();  // what was stored past the caches comes before what follows on other threads
  }

 private:
  int64_t position(int64_t query) const { return t_.shape.first_query + query; }
  QueryStrip strip_at(int64_t head, int64_t query) const {
    const int64_t count = std::min(k_strip, t_.shape.queries - query);
    const int64_t first = t_.first_key(position(query)) / k_strip * k_strip;
    return {head, query, count, first, std::max(first, whole_strips(t_.end_key(position(query + count - 1))))};
  }
  bool is_partial(const QueryStrip& strip, const KeyBlock& block) const {
    return block.key + block.count > t_.end_key(position(strip.query)) ||
           block.key < t_.first_key(position(strip.query + strip.count - 1));
  }

  // Fills the output and its sums; false where these powers will not do.
  template <Powers Kind>
  bool attend(const QueryStrip& strip) {
    sums_.to_scaled = Kind == Powers::near ? 1.0f / k_log2_e : t_.scale;
    if (strip.first_key == strip.end_key) see_nothing();
    for (int64_t key = strip.first_key; key < strip.end_key; key += k_block_keys) {
      const KeyBlock block{key, std::min(k_block_keys, strip.end_key - key)};
      pack_keys_below(key + block.count);
      multiply({packed_left(queries_), across(t_, keys_ + key * t_.width), t_.width / k_step, block.count / k_strip,
                scores_, k_block_keys},
               false);
      const bool is_good =
          is_partial(strip, block) ? fold_scores<Kind, true>(strip, block) : fold_scores<Kind, false>(strip, block);
      if (!is_good) return false;
      multiply({plain_left(powers_, k_block_keys), along(t_, values_ + key * t_.width), block.count / k_step,
                t_.width / k_panel_lines, output_, t_.width},
               key > strip.first_key);
    }
    return true;
  }
  void see_nothing() {
    std::fill_n(output_, k_strip * t_.width, 0.0f);
    std::fill_n(&sums_.sums[0][0], k_strip * k_lanes, 0.0f);
    std::fill_n(sums_.taken, k_strip, k_minus_infinity);
  }
  void pack_keys_below(int64_t end) {
    for (; packed_ < end; packed_ += k_strip) {
      const RowsOfHead rows{group_.kv_head, packed_, std::min(k_strip, t_.keys - packed_)};
      const int64_t at = packed_ * t_.width;
      pack_across(t_, strip_rows(t_, inputs_.key, group_.batch, rows), keys_ + at);
      pack_along(t_, strip_rows(t_, inputs_.value, group_.batch, rows), values_ + at);
    }
  }

  // From scores to powers, whose sums are added up.
  template <Powers Kind, bool IsPartial>
  TPRIMAT_AVX512_BF16 bool fold_scores(const QueryStrip& strip, const KeyBlock& block) {
    const float scale = t_.scale * k_log2_e;
    const bool is_first = block.key == strip.first_key;
    VisibleKeys visible;  // missing rows see what the last one sees, so that they are not without keys
    for (int64_t r = 0; IsPartial && r < k_strip; ++r)
      visible[static_cast<size_t>(r)] =
          visible_keys(t_, position(strip.query + std::min(r, strip.count - 1)), block.key);
    alignas(64) float shrink[k_strip];
    if constexpr (Kind == Powers::near) {
      if (is_first && !choose_references<IsPartial>(block, visible)) return false;
    } else {
      if (is_first) std::fill_n(sums_.taken, k_strip, k_minus_infinity);
      renew_largest<IsPartial>(block, visible, shrink);
      if (!is_first) shrink_output(shrink);
    }
    __mmask16 is_too_large = 0;
    for (int64_t r = 0; r < k_strip; ++r) {
      if (is_first) fetch_rows(strip, r);
      __m512 sums = is_first ? _mm512_setzero_ps() : _mm512_load_ps(sums_.sums[r]);
      if constexpr (Kind == Powers::running) sums = _mm512_mul_ps(sums, _mm512_set1_ps(is_first ? 1.0f : shrink[r]));
      const ScoreRow row{scores_ + r * k_block_keys, block.count, visible[static_cast<size_t>(r)], scale,
                         sums_.taken[r]};
      sums = raise_scores<Kind, IsPartial>(row, sums, powers_ + r * k_block_keys);
      _mm512_store_ps(sums_.sums[r], sums);
      is_too_large |= _mm512_cmp_ps_mask(sums, _mm512_set1_ps(k_max_sum), _CMP_NLE_UQ);
    }
    return Kind == Powers::running || is_too_large == 0;
  }

  // The largest score of all keys in sight, or of the first 32 of a block that all queries see. False where one is too
  // large or not finite, as it is for a row that sees none of them.
  template <bool IsPartial>
  TPRIMAT_AVX512_BF16 bool choose_references(const KeyBlock& block, const VisibleKeys& visible) {
    const int64_t keys = IsPartial ? block.count : k_strip;
    __mmask16 is_too_large = 0;
    for (int64_t r = 0; r < k_strip; ++r)
      sums_.taken[r] = largest_score<IsPartial>(scores_ + r * k_block_keys, keys, visible[static_cast<size_t>(r)]);
    for (int64_t r = 0; r < k_strip; r += k_lanes) {
      const __m512 scaled = _mm512_mul_ps(_mm512_load_ps(sums_.taken + r), _mm512_set1_ps(t_.scale * k_log2_e));
      _mm512_store_ps(sums_.taken + r, scaled);
      is_too_large |= _mm512_cmp_ps_mask(_mm512_abs_ps(scaled), _mm512_set1_ps(k_max_exponent), _CMP_NLE_UQ);
    }
    return is_too_large == 0;
  }
  // shrink: what the sums and the output so far are to be multiplied by.
  template <bool IsPartial>
  TPRIMAT_AVX512_BF16 void renew_largest(const KeyBlock& block, const VisibleKeys& visible, float* shrink) {
    alignas(64) float top[k_strip];
    for (int64_t r = 0; r < k_strip; ++r)
      top[r] = largest_score<IsPartial>(scores_ + r * k_block_keys, block.count, visible[static_cast<size_t>(r)]);
    for (int64_t r = 0; r < k_strip; r += k_lanes) {
      const __m512 old = _mm512_load_ps(sums_.taken + r), renewed = _mm512_max_ps(old, _mm512_load_ps(top + r));
      const __mmask16 has_grown = _mm512_cmp_ps_mask(old, renewed, _CMP_NEQ_UQ);
      const __m512 less = _mm512_mul_ps(_mm512_sub_ps(old, renewed), _mm512_set1_ps(t_.scale * k_log2_e));
      _mm512_store_ps(shrink + r, _mm512_mask_mov_ps(_mm512_set1_ps(1.0f), has_grown, power_of_two(less)));
      _mm512_store_ps(sums_.taken + r, renewed);
    }
  }
  TPRIMAT_AVX512_BF16 void shrink_output(const float* shrink) {
    for (int64_t r = 0; r < k_strip; ++r)
      for (int64_t c = 0; c < t_.width; c += k_lanes) {
        float* const at = output_ + r * t_.width + c;
        _mm512_store_ps(at, _mm512_mul_ps(_mm512_load_ps(at), _mm512_set1_ps(shrink[r])));
      }
  }

  // Row r of the queries, keys and values after this strip; they lie too far apart for the hardware prefetcher.
  void fetch_rows(const QueryStrip& strip, int64_t r) const {
    const int64_t query = strip.query + k_strip + r, key = packed_ + r, width = t_.shape.head_dim;
    if (query < t_.shape.queries) fetch_row(t_.head(inputs_.query, group_.batch, strip.head, query), width);
    if (key >= t_.keys) return;
    fetch_row(t_.head(inputs_.key, group_.batch, group_.kv_head, key), width);
    fetch_row(t_.head(inputs_.value, group_.batch, group_.kv_head, key), width);
  }

  TPRIMAT_AVX512_BF16 void put_output(const QueryStrip& strip) {
    bf16* out = t_.head(y_, group_.batch, strip.head, strip.query);
    for (int64_t r = 0; r < strip.count; ++r, out += y_.row_stride) {
      const bool sees_nothing = t_.sees_nothing(position(strip.query + r));
      const float sum = _mm512_reduce_add_ps(_mm512_load_ps(sums_.sums[r]));
      logsumexp_[t_.statistic(group_, strip.head, strip.query + r)] = sums_.taken[r] * sums_.to_scaled + std::log(sum);
      const float share = sees_nothing ? 0.0f : 1.0f / sum;  // zeros, where it sees no key
      for (int64_t c = 0; c < t_.width; c += 2 * k_lanes)
        put_line(out + c, first_lanes(t_.shape.head_dim - c), output_ + r * t_.width + c, share, streams_);
    }
  }

  const AttentionTiles& t_;
  const HeadGroup& group_;
  const AttentionInputs<bf16>& inputs_;
  const HeadRows<bf16>& y_;
  float* logsumexp_;
  bool streams_;  // the output, past the caches
  bf16 *keys_, *values_, *queries_;
  int64_t packed_ = 0;  // keys and values
  float* scores_;       // 32×64
  bf16* powers_;        // 32×64
  float* output_;       // 32×width, to be divided by the sums
  StripSums sums_;
};

}  // namespace

void attention_forward(const AttentionShape& shape, const AttentionInputs<bf16>& inputs, const HeadRows<bf16>& y,
                       float* logsumexp) {
  const AttentionTiles tiles(shape, k_step);
  for_groups(shape, [&](const HeadGroup& group) { ForwardGroup(tiles, group, inputs, y, logsumexp).run(); });
}

}  // namespace tprimat::engine::amx

#else

namespace tprimat::engine::amx {
void attention_forward(const AttentionShape&, const AttentionInputs<bf16>&, const HeadRows<bf16>&, float*) {
  CHECK(false);
}
}  // namespace tprimat::engine::amx
#endif

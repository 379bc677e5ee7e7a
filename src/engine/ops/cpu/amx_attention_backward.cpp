#include <vector>

#include "base/check.h"
#include "ops/cpu/amx_attention.h"
#include "ops/cpu/amx_attention_strips.h"
#include "ops/cpu/bf16_attention_gradients.h"

#if TPRIMAT_HAS_AVX512_BF16

namespace tprimat::engine::amx {
namespace {

// dkeys and dvalues are summed up transposed, width×32 for each strip of keys: the left side of their products then has
// a row per element of the head, over the queries, and the right side is pairs of two queries, as the softmax leaves
// them.
constexpr int64_t k_block_strips = 8, k_block_queries = k_block_strips * k_strip;
constexpr int64_t k_block_keys = 128, k_score_keys = 64;

// Some queries of one head.
struct QueryBlock {
  int64_t head, first, count;
  int64_t strips() const { return (count + k_strip - 1) / k_strip; }
};
// Up to 32 of them.
struct QueryStrip {
  int64_t index, first, count;
};
struct Keys {
  int64_t first, end;
  bool empty() const { return first >= end; }
  int64_t count() const { return end - first; }
};

class BackwardGroup {
 public:
  BackwardGroup(const AttentionTiles& t, const HeadGroup& group, const AttentionGradient<bf16>& g)
      : t_(t),
        group_(group),
        g_(g),
        rotates_(g.rope.cosine != nullptr),
        streams_queries_(exceeds_caches(tensor_bytes(t, g.dquery))),
        streams_keys_(exceeds_caches(tensor_bytes(t, g.dkey)) && !g.accumulate) {
    const int64_t whole = whole_strips(t.keys) * t.width, block = k_block_queries * t.width;
    TileScratch& scratch = thread_scratch(t, 6 * block + 4 * k_block_queries * k_block_keys + k_lanes * t.width);
    for (bf16** buffer : {&keys_across_, &keys_along_, &values_across_}) *buffer = take_bf16(scratch, whole);
    for (bf16** buffer : {&queries_, &doutput_, &queries_by_dim_, &doutput_by_dim_})
      *buffer = take_bf16(scratch, block);
    for (bf16** buffer : {&power_pairs_, &dscore_pairs_}) *buffer = take_bf16(scratch, k_block_queries * k_block_keys);
    dscores_ = take_bf16(scratch, k_strip * k_block_keys);
    for (float** buffer : {&scores_, &dpowers_}) *buffer = scratch.take(k_strip * k_score_keys);
    dqueries_ = scratch.take(block);
    for (float** buffer : {&dkeys_, &dvalues_}) *buffer = scratch.take(whole);
    key_rows_ = scratch.take(k_lanes * t.width);
    has_gradient_.assign(static_cast<size_t>(whole_strips(t.keys) / k_strip), false);
  }

  void run() {
    const TileRegisters registers;
    const int64_t heads = t_.shape.heads / t_.shape.kv_heads;
    for (int64_t head = group_.kv_head * heads; head < (group_.kv_head + 1) * heads; ++head)
      for (int64_t query = 0; query < t_.shape.queries; query += k_block_queries) {
        const QueryBlock block{head, query, std::min(k_block_queries, t_.shape.queries - query)};
        gather(block);
        next_ = {head, query + k_block_queries, 0}, fetched_ = 0;
        work_through(block);
        put_query_gradients(block);
      }
    put_key_gradients(dkeys_, t_.scale, g_.dkey, rotates_);
    put_key_gradients(dvalues_, 1.0f, g_.dvalue, false);
    _mm_sfence();  // what was stored past the caches comes before what follows on other threads
  }

 private:
  int64_t position(int64_t query) const { return t_.shape.first_query + query; }
  StripRows rows_of(const HeadRows<const bf16>& rows, int64_t head, int64_t first, int64_t count) const {
    return strip_rows(t_, rows, group_.batch, {head, first, count});
  }
  // Whole strips of keys that some of these queries see.
  Keys seen_by(int64_t query, int64_t count) const {
    return {t_.first_key(position(query)) / k_strip * k_strip, whole_strips(t_.end_key(position(query + count - 1)))};
  }
  Keys seen_by(const QueryStrip& strip) const { return seen_by(strip.first, strip.count); }
  static QueryStrip strip_of(const QueryBlock& block, int64_t index) {
    return {index, block.first + index * k_strip, std::min(k_strip, block.count - index * k_strip)};
  }

  // What a block of queries needs.
  TPRIMAT_AVX512_BF16 void gather(const QueryBlock& block) {
    const auto rows_from = [&](const HeadRows<const bf16>& rows, int64_t query) {
      return rows_of(rows, block.head, query, std::min(k_strip, block.first + block.count - query));
    };
    statistics_.fill({0.0f, 0.0f});
    for (int64_t at = 0; at < block.count; at += k_strip) {
      const int64_t query = block.first + at;
      const StripRows q = rows_from(g_.inputs.query, query), dy = rows_from(g_.dy, query), y = rows_from(g_.y, query);
      pack_rows(t_, q, queries_ + at * t_.width);
      pack_rows(t_, dy, doutput_ + at * t_.width);
      for (int64_t r = 0; r < q.count; ++r)
        statistics_[static_cast<size_t>(at + r)] = {
            g_.logsumexp[t_.statistic(group_, block.head, query + r)],
            dot_product(y.rows + r * y.stride, dy.rows + r * dy.stride, t_.shape.head_dim)};
    }
    pack_by_dim(rows_of(g_.inputs.query, block.head, block.first, block.count), queries_by_dim_);
    pack_by_dim(rows_of(g_.dy, block.head, block.first, block.count), doutput_by_dim_);
    const int64_t end = seen_by(block.first, block.count).end;
    for (; packed_ < end; packed_ += k_strip) {
      const int64_t count = std::min(k_strip, t_.keys - packed_), at = packed_ * t_.width;
      const StripRows keys = rows_of(g_.inputs.key, group_.kv_head, packed_, count);
      pack_across(t_, keys, keys_across_ + at);
      pack_along(t_, keys, keys_along_ + at);
      pack_across(t_, rows_of(g_.inputs.value, group_.kv_head, packed_, count), values_across_ + at);
    }
  }
  // A row per element of the head.
  void pack_by_dim(const StripRows& from, bf16* to) const {
    amx::pack_panels(Side::left, {from.rows, t_.shape.head_dim, from.count, 1, from.stride},
                     {0, t_.width, 0, from.count}, to);
  }

  void work_through(const QueryBlock& block) {
    for (int64_t i = 0; i < block.strips(); ++i)
      if (seen_by(strip_of(block, i)).empty())
        std::fill_n(dqueries_ + i * k_strip * t_.width, k_strip * t_.width, 0.0f);
    const Keys seen = seen_by(block.first, block.count);
    for (Keys keys{seen.first, 0}; keys.first < seen.end; keys.first += k_block_keys) {
      keys.end = std::min(keys.first + k_block_keys, seen.end);
      for (int64_t i = 0; i < block.strips(); ++i) {
        const QueryStrip strip = strip_of(block, i);
        const Keys own = seen_by(strip);
        const Keys part{std::max(keys.first, own.first), std::min(keys.end, own.end)};
        if (!part.empty()) add_strip(strip, keys, part, keys.first > own.first);
      }
      add_keys(block, keys);
    }
  }

  // The powers of one strip of queries and their gradients; adds to its dqueries.
  void add_strip(const QueryStrip& strip, const Keys& keys, const Keys& part, bool accumulate) {
    const int64_t at = strip.index * k_strip * t_.width;
    for (int64_t key = part.first; key < part.end; key += k_score_keys) {
      const Keys now{key, std::min(key + k_score_keys, part.end)};
      const auto score = [&](const bf16* rows, const bf16* panels, float* scores) {
        multiply({packed_left(rows + at), across(t_, panels + key * t_.width), t_.width / k_step, now.count() / k_strip,
                  scores, k_score_keys},
                 false);
      };
      score(queries_, keys_across_, scores_);
      score(doutput_, values_across_, dpowers_);
      if (is_partial(strip, now))
        fold_back<true>(strip, keys, now);
      else
        fold_back<false>(strip, keys, now);
    }
    multiply(
        {plain_left(dscores_ + (part.first - keys.first), k_block_keys), along(t_, keys_along_ + part.first * t_.width),
         part.count() / k_step, t_.width / k_panel_lines, dqueries_ + at, t_.width},
        accumulate);
  }
  // Whether some of 32 queries must not see some of these keys. Missing queries see no key.
  bool is_partial(const QueryStrip& strip, const Keys& keys) const {
    return strip.count < k_strip || keys.end > t_.end_key(position(strip.first)) ||
           keys.first < t_.first_key(position(strip.first + strip.count - 1));
  }
  uint64_t visible_to(const QueryStrip& strip, int64_t row, const Keys& keys) const {
    return row < strip.count ? visible_keys(t_, position(strip.first + row), keys.first) : 0;
  }

  // A strip of queries and up to 64 keys.
  template <bool IsPartial>
  TPRIMAT_AVX512_BF16 void fold_back(const QueryStrip& strip, const Keys& keys, const Keys& now) {
    const QueryStatistics* const statistics = statistics_.data() + strip.index * k_strip;
    for (int64_t r = 0; r < k_strip; r += 2) {
      fetch_next_row(), fetch_next_row();
      const uint64_t visible[2] = {IsPartial ? visible_to(strip, r, now) : 0,
                                   IsPartial ? visible_to(strip, r + 1, now) : 0};
      bf16* const dscores = dscores_ + r * k_block_keys + (now.first - keys.first);
      for (int64_t c = 0; c < now.count(); c += k_lanes) {
        const int64_t from = r * k_score_keys + c;
        PowerAndGradient even = softmax_backward(scores_ + from, dpowers_ + from, t_.scale, statistics[r]);
        PowerAndGradient odd = softmax_backward(scores_ + from + k_score_keys, dpowers_ + from + k_score_keys, t_.scale,
                                                statistics[r + 1]);
        if (IsPartial) hide_others(lanes_of(visible[0], c), even), hide_others(lanes_of(visible[1], c), odd);
        const __m512i powers = narrow_both(even.power, odd.power), gradients = narrow_both(even.dscore, odd.dscore);
        const int64_t pair = pair_at(keys, strip.index, now.first + c - keys.first, r);
        _mm512_store_si512(power_pairs_ + pair, interleave_halves(powers));
        _mm512_store_si512(dscore_pairs_ + pair, interleave_halves(gradients));
        _mm256_store_si256(reinterpret_cast<__m256i*>(dscores + c), _mm512_castsi512_si256(gradients));
        _mm256_store_si256(reinterpret_cast<__m256i*>(dscores + k_block_keys + c),
                           _mm512_extracti64x4_epi64(gradients, 1));
      }
    }
  }
  // Where the pair of queries r and r + 1 of a strip lies for 16 keys: the right side of a product over queries whose
  // columns are keys.
  static int64_t pair_at(const Keys& keys, int64_t strip, int64_t key, int64_t r) {
    const int64_t tile = 2 * (strip * (keys.count() / k_strip)) + key / k_lanes;
    return tile * k_step_size / 2 + r * k_lanes;
  }

  // The strips of a block that see a strip of keys: [first, end).
  struct Strips {
    int64_t first, end;
  };
  Strips strips_that_see(const QueryBlock& block, int64_t key) const {
    const auto sees = [&](int64_t index) {
      const Keys own = seen_by(strip_of(block, index));
      return own.first <= key && key < own.end;
    };
    Strips strips{0, block.strips()};
    while (strips.first < strips.end && !sees(strips.first)) ++strips.first;
    while (strips.first < strips.end && !sees(strips.end - 1)) --strips.end;
    return strips;
  }

  // Adds to dkeys and dvalues of these keys what the queries of a block that see them give. 32 rows of the left side
  // stay in the first-level cache while all strips of keys pass by.
  void add_keys(const QueryBlock& block, const Keys& keys) {
    const int64_t of_keys = keys.count() / k_strip;
    const auto add = [&](const bf16* by_dim, const bf16* pairs, int64_t dim, int64_t key, float* gradient) {
      const auto [first, end] = strips_that_see(block, key);
      if (first == end) return;
      const bf16* const left = by_dim + (dim / k_strip * block.strips() + first) * k_step_size;
      const bf16* const right = pairs + (first * of_keys + (key - keys.first) / k_strip) * k_step_size;
      multiply({packed_left(left),
                {right, of_keys * k_step_size, 0},
                end - first,
                1,
                gradient + key * t_.width + dim * k_strip,
                k_strip},
               has_gradient_[static_cast<size_t>(key / k_strip)]);
    };
    for (int64_t dim = 0; dim < t_.width; dim += k_strip)
      for (int64_t key = keys.first; key < keys.end; key += k_strip)
        add(doutput_by_dim_, power_pairs_, dim, key, dvalues_);
    for (int64_t dim = 0; dim < t_.width; dim += k_strip)
      for (int64_t key = keys.first; key < keys.end; key += k_strip)
        add(queries_by_dim_, dscore_pairs_, dim, key, dkeys_);
    for (int64_t key = keys.first; key < keys.end; key += k_strip) {
      const auto [first, end] = strips_that_see(block, key);
      if (first < end) has_gradient_[static_cast<size_t>(key / k_strip)] = true;
    }
  }

  // A row of what the next block of queries needs, as long as there are any.
  __attribute__((always_inline)) void fetch_next_row() {
    const int64_t query = next_.first + fetched_, key = packed_ + fetched_, width = t_.shape.head_dim;
    if (fetched_ == k_block_queries) return;
    ++fetched_;
    if (query < t_.shape.queries)
      for (const HeadRows<const bf16>* rows : {&g_.inputs.query, &g_.dy, &g_.y})
        fetch_row(t_.head(*rows, group_.batch, next_.head, query), width);
    if (key < t_.keys)
      for (const HeadRows<const bf16>* rows : {&g_.inputs.key, &g_.inputs.value})
        fetch_row(t_.head(*rows, group_.batch, group_.kv_head, key), width);
  }

  // Where the gradients of one head go.
  struct HeadPlace {
    bf16* first;
    Layout layout;
    bf16* line(int64_t row, int64_t col) const {
      const int64_t in_block = row % k_panel_lines;
      return first + place_of({row - in_block, col, in_block}, layout);
    }
  };
  HeadPlace place_of_head(const HeadRows<bf16>& to, int64_t head) const {
    return {to.head(head, t_.shape.head_dim) + group_.batch * to.sequence_stride, {to.in_blocks, to.row_stride}};
  }

  // Turns a rotated row's gradient into the unrotated row's (rope.h, direction −1).
  TPRIMAT_AVX512_BF16 void rotate_back(float* row, int64_t token) const {
    const int64_t half = t_.shape.head_dim / 2, at = token * half;
    for (int64_t c = 0; c < half; c += k_lanes) {
      const __mmask16 present = lanes_below(half - c);
      const __m512 cosine = _mm512_maskz_loadu_ps(present, g_.rope.cosine + at + c);
      const __m512 sine = _mm512_maskz_loadu_ps(present, g_.rope.sine + at + c);
      const __m512 a = _mm512_maskz_loadu_ps(present, row + c), b = _mm512_maskz_loadu_ps(present, row + half + c);
      _mm512_mask_storeu_ps(row + c, present, _mm512_fmadd_ps(b, sine, _mm512_mul_ps(a, cosine)));
      _mm512_mask_storeu_ps(row + half + c, present, _mm512_fnmadd_ps(a, sine, _mm512_mul_ps(b, cosine)));
    }
  }

  TPRIMAT_AVX512_BF16 void put_query_gradients(const QueryBlock& block) {
    const HeadPlace to = place_of_head(g_.dquery, block.head);
    for (int64_t r = 0; r < block.count; ++r) {
      float* const row = dqueries_ + r * t_.width;
      if (rotates_) rotate_back(row, block.first + r);
      for (int64_t c = 0; c < t_.width; c += 2 * k_lanes)
        put_line(to.line(block.first + r, c), first_lanes(t_.shape.head_dim - c), row + c, t_.scale, streams_queries_);
    }
  }

  // dkey or dvalue.
  TPRIMAT_AVX512_BF16 void put_key_gradients(const float* gradient, float factor, const HeadRows<bf16>& rows,
                                             bool rotates) {
    const HeadPlace to = place_of_head(rows, group_.kv_head);
    for (int64_t key = 0; key < t_.keys; key += k_lanes) {
      const int64_t count = std::min(k_lanes, t_.keys - key);
      if (!has_gradient_[static_cast<size_t>(key / k_strip)]) {
        put_zeros(to, key, key + count);
        continue;
      }
      take_rows(gradient, key);
      for (int64_t i = 0; i < count; ++i) {
        float* const row = key_rows_ + i * t_.width;
        if (rotates) rotate_back(row, key + i);
        for (int64_t c = 0; c < t_.width; c += 2 * k_lanes)
          put_key_line(to.line(key + i, c), first_lanes(t_.shape.head_dim - c), row + c, factor);
      }
    }
    put_zeros(to, t_.keys, t_.shape.keys);
  }
  // 16 rows of a gradient of keys, from columns.
  TPRIMAT_AVX512_BF16 void take_rows(const float* gradient, int64_t key) {
    for (int64_t c = 0; c < t_.width; c += k_lanes) {
      const float* const from = gradient + key / k_strip * k_strip * t_.width + c * k_strip + key % k_strip;
      __m512i columns[k_lanes];
      for (int64_t i = 0; i < k_lanes; ++i) columns[i] = _mm512_load_si512(from + i * k_strip);
      transpose(columns);
      for (int64_t i = 0; i < k_lanes; ++i) _mm512_store_si512(key_rows_ + i * t_.width + c, columns[i]);
    }
  }
  TPRIMAT_INLINE_AVX512_BF16 void put_key_line(bf16* to, __mmask32 present, const float* from, float factor) const {
    if (!g_.accumulate) return put_line(to, present, from, factor, streams_keys_);
    const __m512 factors = _mm512_set1_ps(factor);
    const __m512 low = _mm512_fmadd_ps(_mm512_load_ps(from), factors, widen(to, low_half(present)));
    const __m512 high =
        _mm512_fmadd_ps(_mm512_load_ps(from + k_lanes), factors, widen(to + k_lanes, high_half(present)));
    store_line(to, present, narrow_both(low, high), false);
  }
  void put_zeros(const HeadPlace& to, int64_t key, int64_t end) const {
    if (g_.accumulate) return;
    for (; key < end; ++key)
      for (int64_t c = 0; c < t_.shape.head_dim; c += k_strip)
        std::fill_n(to.line(key, c), std::min(k_strip, t_.shape.head_dim - c), bf16{});
  }

  const AttentionTiles& t_;
  const HeadGroup& group_;
  const AttentionGradient<bf16>& g_;
  bool rotates_;                         // gradients of queries and keys
  bool streams_queries_, streams_keys_;  // their gradients, past the caches
  bf16 *keys_across_, *keys_along_, *values_across_;
  int64_t packed_ = 0;  // keys and values
  // Of a block of queries.
  bf16 *queries_, *doutput_, *queries_by_dim_, *doutput_by_dim_;
  std::array<QueryStatistics, k_block_queries> statistics_;
  float* dqueries_;
  QueryBlock next_{};  // whose rows are fetched meanwhile
  int64_t fetched_ = 0;
  // Of a block of queries and one of keys.
  bf16 *power_pairs_, *dscore_pairs_;
  // Of a strip of queries.
  bf16* dscores_;             // 32×128
  float *scores_, *dpowers_;  // 32×64
  float *dkeys_, *dvalues_;
  float* key_rows_;                 // of a gradient of keys
  std::vector<bool> has_gradient_;  // by strip of keys
};

}  // namespace

void attention_backward(const AttentionShape& shape, const AttentionGradient<bf16>& gradient) {
  const AttentionTiles tiles(shape, k_step);
  CHECK(gradient.rope.cosine == nullptr || (shape.first_query == 0 && !gradient.accumulate));
  for (const HeadRows<bf16>* rows : {&gradient.dquery, &gradient.dkey, &gradient.dvalue})
    CHECK(!rows->in_blocks || (shape.head_dim % k_strip == 0 && shape.queries % k_strip == 0 &&
                               shape.keys == shape.queries && !gradient.accumulate));
  for_groups(shape, [&](const HeadGroup& group) { BackwardGroup(tiles, group, gradient).run(); });
}

}  // namespace tprimat::engine::amx

#else

namespace tprimat::engine::amx {
void attention_backward(const AttentionShape&, const AttentionGradient<bf16>&) { CHECK(false); }
}  // namespace tprimat::engine::amx
#endif

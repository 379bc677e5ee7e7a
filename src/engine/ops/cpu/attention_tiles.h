#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "device/parallel.h"
#include "ops/attention.h"
#include "ops/cpu/growing_buffer.h"

namespace tprimat::engine {

// One thread's work: all query heads that share one key/value head of one sequence. Keys and values are kept
// as the products read them, so that these run on data in the cache: in tiles of 64, in float or bf16, or in strips of
// 32 by AMX. Query tiles count from first_query, key tiles from key 0.
inline constexpr int64_t k_tile = 64;

struct HeadGroup {
  int64_t batch, kv_head;
};

// work(group) for every group, dealt out as threads become free.
template <class GroupWork>
void for_groups(const AttentionShape& shape, const GroupWork& work) {
  CHECK(shape.heads % shape.kv_heads == 0 && shape.first_query >= 0);
  parallel_each(shape.batch * shape.kv_heads, [&](int64_t index) {
    work(HeadGroup{index / shape.kv_heads, index % shape.kv_heads});
  });
}

// The rows of a head lie too far apart for the hardware prefetcher, so loops over rows prefetch the row this many rows
// ahead.
inline constexpr int64_t k_rows_ahead = 8;
enum class For : uint8_t { reading, writing };
template <For Use, class T>
void prefetch_row(const T* row, int64_t elements) {
  constexpr int64_t k_line = 64 / static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < elements; i += k_line) __builtin_prefetch(row + i, Use == For::writing ? 1 : 0);
}

// One tile of queries of one head.
struct HeadTile {
  int64_t head, tile;
};

struct AttentionTiles {
  explicit AttentionTiles(const AttentionShape& s, int64_t vector = 16)
      : shape(s),
        width((s.head_dim + vector - 1) / vector * vector),
        query_tiles((s.queries + k_tile - 1) / k_tile),
        keys(std::min(s.keys, s.first_query + s.queries)),
        key_tiles((keys + k_tile - 1) / k_tile),
        scale(1.0f / std::sqrt(static_cast<float>(s.head_dim))) {}

  const AttentionShape shape;
  const int64_t width;  // head_dim rounded up to `vector` elements; the rest is zero
  const int64_t query_tiles;
  const int64_t keys;  // that some query may see
  const int64_t key_tiles;
  const float scale;

  int64_t key_length() const { return key_tiles * k_tile; }  // keys rounded up to whole tiles
  int64_t rows(int64_t query_tile) const { return std::min(k_tile, shape.queries - query_tile * k_tile); }
  int64_t position(int64_t query_tile) const { return shape.first_query + query_tile * k_tile; }  // of its first query
  // Keys that the query at `position` sees: [first_key, end_key), empty where first_key is not below end_key.
  int64_t first_key(int64_t position) const { return shape.first_key(position); }
  int64_t end_key(int64_t position) const { return std::min(keys, position + 1); }
  bool sees_nothing(int64_t position) const { return first_key(position) >= end_key(position); }
  int64_t first_key_tile(int64_t query_tile) const { return first_key(position(query_tile)) / k_tile; }
  int64_t end_key_tile(int64_t query_tile) const {
    return (end_key(position(query_tile) + rows(query_tile) - 1) + k_tile - 1) / k_tile;
  }
  // Whether some pair of query and key in the two tiles must not see each other.
  bool needs_mask(int64_t query_tile, int64_t key_tile) const {
    const int64_t first = position(query_tile), last = first + rows(query_tile) - 1;
    return (key_tile + 1) * k_tile > end_key(first) || key_tile * k_tile < first_key(last);
  }
  // Of rows that do not lie in blocks.
  template <class T>
  T* head(const HeadRows<T>& rows_of, int64_t batch, int64_t head, int64_t t) const {
    return rows_of.data + batch * rows_of.sequence_stride + t * rows_of.row_stride + head * shape.head_dim;
  }
  int64_t statistic(const HeadGroup& g, int64_t head, int64_t t) const {
    return (g.batch * shape.heads + head) * shape.queries + t;
  }
  // visit(query head, tile of queries) for all of a group.
  template <class Visit>
  void visit_queries(const HeadGroup& group, const Visit& visit) const {
    const int64_t heads = shape.heads / shape.kv_heads;
    for (int64_t head = group.kv_head * heads; head < (group.kv_head + 1) * heads; ++head)
      for (int64_t tile = 0; tile < query_tiles; ++tile) visit(head, tile);
  }
  // put(row of `from`, row of `to`) of the keys of a group that queries see, for its dkey or dvalue; the other rows get
  // zeros, or stay.
  template <class T, class Put>
  void put_key_gradient(const HeadGroup& group, const float* from, bool accumulate, const HeadRows<T>& to,
                        const Put& put) const {
    T* const first = head(to, group.batch, group.kv_head, 0);
    for (int64_t s = 0; s < keys; ++s) {
      prefetch_row<For::writing>(first + (s + k_rows_ahead) * to.row_stride, shape.head_dim);
      put(from + s * width, first + s * to.row_stride);
    }
    for (int64_t s = keys; s < shape.keys && !accumulate; ++s)
      std::fill_n(first + s * to.row_stride, shape.head_dim, T{});
  }
};

struct Span {
  int64_t begin, end;
  int64_t count() const { return end - begin; }
  // With what lies around it up to multiples of `unit`; an empty span stays empty.
  Span in_wholes_of(int64_t unit) const {
    return begin == end ? *this : Span{begin / unit * unit, (end + unit - 1) / unit * unit};
  }
};

// Which of a tile of queries see which of a tile of keys. Both count from the first of their tile.
struct TileMask {
  TileMask(const AttentionTiles& of, int64_t query_tile, int64_t key_tile)
      : t(of),
        rows(of.rows(query_tile)),
        is_masked(of.needs_mask(query_tile, key_tile)),
        position(of.position(query_tile)),
        first(key_tile * k_tile) {}

  const AttentionTiles& t;
  const int64_t rows;  // queries
  const bool is_masked;
  const int64_t position, first;  // among all keys: of the first query, and the first key

  static Span within_tile(int64_t begin, int64_t end) {
    begin = std::clamp<int64_t>(begin, 0, k_tile);
    return {begin, std::clamp<int64_t>(end, begin, k_tile)};
  }
  // Keys that some of the queries see.
  Span keys_of(const Span& queries) const {
    if (!is_masked) return {0, k_tile};
    return within_tile(t.first_key(position + queries.begin) - first, t.end_key(position + queries.end - 1) - first);
  }
  // Queries that see some of the keys.
  Span queries_of(const Span& keys) const {
    if (!is_masked) return {0, rows};
    const int64_t from = first - position;
    const bool is_bounded = t.shape.window > 0 && t.shape.window < t.keys;
    const Span span = within_tile(from + keys.begin, is_bounded ? from + keys.end - 1 + t.shape.window : rows);
    return {std::min(span.begin, rows), std::min(span.end, rows)};
  }
  // visit(part of [0, count)), in small parts, so that much can be skipped; all at once where nothing is masked.
  template <class Visit>
  void in_parts(int64_t count, const Visit& visit) const {
    constexpr int64_t k_part = 12;  // two tiles of the product
    const int64_t length = is_masked ? k_part : count;
    for (int64_t at = 0; at < count; at += length) visit(Span{at, std::min(at + length, count)});
  }
};

inline constexpr float k_minus_infinity = -std::numeric_limits<float>::infinity();

// The softmax of each query of a tile over the keys so far.
struct RunningTile {
  RunningTile() { largest.fill(k_minus_infinity); }
  std::array<float, k_tile> largest, sums{};
};

// Float buffers that one thread reuses for every group it works on.
class TileScratch {
 public:
  float* take(int64_t count) {
    constexpr int64_t k_two_lines = 32;  // floats in two cache lines: no vector and no row of a tile crosses one
    const int64_t at = used_;
    used_ += (count + k_two_lines - 1) / k_two_lines * k_two_lines;
    CHECK(used_ <= capacity_);
    return memory_ + at;
  }
  void restart(int64_t capacity) {
    memory_ = buffer_.at_least(capacity), capacity_ = capacity;
    used_ = 0;
  }

 private:
  GrowingBuffer<float> buffer_;
  float* memory_ = nullptr;
  int64_t capacity_ = 0, used_ = 0;
};

// `more`: floats beside what the pass in float takes.
inline TileScratch& thread_scratch(const AttentionTiles& tiles, int64_t more = 0) {
  thread_local TileScratch scratch;
  scratch.restart(tiles.key_length() * tiles.width * 6 + k_tile * (tiles.width * 5 + k_tile * 4 + 8) + more + 1024);
  return scratch;
}

}  // namespace tprimat::engine

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "ops/attention.h"

namespace tprimat {

// One thread's work: all query heads that share one key/value head of one sequence. Keys and values are widened to
// float once and kept in tiles of 64, so that every product below runs on data in the cache.
inline constexpr int64_t k_tile = 64;

struct HeadGroup {
  int64_t batch, kv_head;
};

struct AttentionTiles {
  explicit AttentionTiles(const AttentionShape& s)
      : shape(s), width((s.head_dim + 15) / 16 * 16), tiles((s.sequence + k_tile - 1) / k_tile) {}

  const AttentionShape shape;
  const int64_t width;  // head_dim rounded up to whole vectors; the rest is zero
  const int64_t tiles;

  int64_t length() const { return tiles * k_tile; }  // sequence rounded up to whole tiles
  int64_t rows(int64_t tile) const { return std::min(k_tile, shape.sequence - tile * k_tile); }
  int64_t first_tile(int64_t query_tile) const { return shape.first_key(query_tile * k_tile) / k_tile; }
  // Whether some pair of query and key in the two tiles must not see each other.
  bool needs_mask(int64_t query_tile, int64_t key_tile) const {
    return key_tile == query_tile || shape.first_key(query_tile * k_tile + rows(query_tile) - 1) > key_tile * k_tile;
  }
  int64_t token(const HeadGroup& group, int64_t t) const {
    return (group.batch * shape.sequence + t) * shape.row_width();
  }
  int64_t query(const HeadGroup& g, int64_t head, int64_t t) const { return token(g, t) + head * shape.head_dim; }
  int64_t key(const HeadGroup& g, int64_t t) const { return token(g, t) + (shape.heads + g.kv_head) * shape.head_dim; }
  int64_t value(const HeadGroup& g, int64_t t) const { return key(g, t) + shape.kv_heads * shape.head_dim; }
  int64_t output(const HeadGroup& g, int64_t head, int64_t t) const {
    return ((g.batch * shape.sequence + t) * shape.heads + head) * shape.head_dim;
  }
  int64_t statistic(const HeadGroup& g, int64_t head, int64_t t) const {
    return (g.batch * shape.heads + head) * shape.sequence + t;
  }
  int64_t heads_per_group() const { return shape.heads / shape.kv_heads; }
};

// Float buffers that one thread reuses for every group it works on.
class TileScratch {
 public:
  float* take(int64_t count) {
    const size_t at = used_;
    used_ += static_cast<size_t>((count + 31) / 32 * 32);
    CHECK(used_ <= memory_.size());
    return memory_.data() + at;
  }
  void restart(int64_t capacity) {
    if (memory_.size() < static_cast<size_t>(capacity)) memory_.resize(static_cast<size_t>(capacity));
    used_ = 0;
  }

 private:
  std::vector<float> memory_;
  size_t used_ = 0;
};

inline TileScratch& thread_scratch(const AttentionTiles& tiles) {
  thread_local TileScratch scratch;
  scratch.restart(tiles.length() * tiles.width * 6 + k_tile * (tiles.width * 4 + k_tile * 2 + 8) + 1024);
  return scratch;
}

}  // namespace tprimat

#include "nn/parameters.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tprimat::engine {
namespace {

uint64_t mix(uint64_t state) { return mix_bits(state + 0x9E3779B97F4A7C15u); }

// FNV-1a, 64 bits.
uint64_t hash_name(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

}  // namespace

int64_t Shard::row_count() const {
  int64_t count = 0;
  for (const RowRange& range : rows) count += range.count;
  return count;
}

int64_t Shard::whole_index(int64_t index) const {
  int64_t row = index / cols;
  for (const RowRange& range : rows) {
    if (row < range.count) return (range.first + row) * whole_cols + first_col + index % cols;
    row -= range.count;
  }
  CHECK(!"the index is inside the shard");
}

int ParameterTable::begin_unit(const std::string& name) {
  CHECK(units_.size() < plan_.units().size());
  const ElementRange& planned = plan_.units()[units_.size()];
  units_.push_back({name, planned.begin, planned.end});
  return unit_count() - 1;
}

int64_t ParameterTable::add(Parameter parameter, const ElementRange& planned) {
  CHECK(!units_.empty() && planned.begin >= units_.back().begin && planned.end <= units_.back().end);
  CHECK(parameter.count() == planned.size());
  parameter.offset = planned.begin;
  count_ += parameter.count();
  all_.push_back(std::move(parameter));
  return all_.back().offset;
}

std::vector<ElementRange> ParameterTable::ranges_to_clear(const ElementRange& of) const {
  std::vector<ElementRange> ranges;
  int64_t begin = of.begin;
  for (const Parameter& parameter : all_) {
    if (!parameter.is_written_first || parameter.offset < of.begin || parameter.offset >= of.end) continue;
    if (begin < parameter.offset) ranges.push_back({begin, parameter.offset});
    begin = parameter.offset + parameter.count();
  }
  if (begin < of.end) ranges.push_back({begin, of.end});
  return ranges;
}

std::vector<InitialPiece> initial_values(const Parameter& parameter, int64_t seed, int64_t begin, int64_t count) {
  const Shard& shard = parameter.shard;
  std::vector<InitialPiece> pieces;
  int64_t before = 0;  // local values in the row ranges so far
  for (const RowRange& rows : shard.rows) {
    const int64_t here = rows.count * shard.cols;
    const int64_t skip = std::max<int64_t>(begin - before, 0), end = std::min(begin + count - before, here);
    if (skip < end)
      pieces.push_back({before + skip - begin,
                        end - skip,
                        {.mean = parameter.mean,
                         .stddev = parameter.stddev,
                         .stream = mix(static_cast<uint64_t>(seed) ^ hash_name(parameter.name)),
                         .first = rows.first * shard.whole_cols + shard.first_col,
                         .cols = shard.cols,
                         .whole_cols = shard.whole_cols,
                         .skip = skip}});
    before += here;
  }
  return pieces;
}

}  // namespace tprimat::engine

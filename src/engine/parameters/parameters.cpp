#include "parameters/parameters.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tprimat::engine {

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

}  // namespace tprimat::engine

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "text/enum_names.h"

namespace tprimat::engine {

enum class DataSplit { train, valid, test };
constexpr auto enum_table(DataSplit) {
  return std::to_array<std::pair<DataSplit, std::string_view>>(
      {{DataSplit::train, "train"}, {DataSplit::valid, "valid"}, {DataSplit::test, "test"}});
}

// [begin, end) of the sequences of an index.
struct SequenceRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const SequenceRange&) const = default;
};

// Which of `sequences` sequences belong to a split, by Megatron-LM's --split: up to three weights, "949,50,1"; missing
// ones are 0. They are divided by their sum, added up, multiplied by the number of sequences and rounded, halves to
// even (megatron/core/datasets/blended_megatron_dataset_config.py and blended_megatron_dataset_builder.py). Empty for a
// weight of 0. Throws Error for text that is no such list.
std::optional<SequenceRange> split_sequences(const std::string& weights, DataSplit split, int64_t sequences);

}  // namespace tprimat::engine

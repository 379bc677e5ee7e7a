#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "result/time_to_train.h"

namespace tprimat {

// The quality at which a training of MLPerf's closed division ends.
struct QualityTarget {
  std::string_view benchmark;
  double target;
  bool higher_is_better;
};

// Null for a benchmark that is not known.
const QualityTarget* find_quality_target(const std::optional<std::string>& benchmark);

// Whether the reached quality is on the right side of the target. Nothing where one of them, or the side, is unknown.
std::optional<bool> reaches_target(const TimeToTrain& time);

// What the closed division demands of a run that states another target. Nothing where the target is its own.
std::optional<double> demanded_target(const TimeToTrain& time);

}  // namespace tprimat

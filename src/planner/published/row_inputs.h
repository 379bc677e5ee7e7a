#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "published/cells.h"
#include "published/table.h"
#include "spec/flop_breakdown.h"

namespace tprimat::planner {

// One way to know an input. `deviation` is "" for what the row itself says; else the assumption, as a word of the list
// in docs/metrics.md.
struct SequenceChoice {
  int64_t length = 0;
  std::string deviation;
};
struct RateChoice {
  Bounds tokens_per_second_per_gpu;
  std::string from;  // "step time", "tokens/s", "tokens/s per GPU", "time for 300B tokens"
  std::string deviation;
  int64_t sequence_length = 0;  // only with this one; 0: with any
};
struct PeakChoice {
  double flops_per_second = 0;
  std::string id;  // "H100-SXM-80GB bf16 989"
  std::string deviation;
};

enum class TuningKind { none, whole, adapters };  // fine-tuning of all weights, or of low-rank adapters alone

// What a row says that decides its FLOPs, found by name or printed.
struct RowInputs {
  std::optional<ModelSpec> shape;
  bool vocabulary_known = false;
  int64_t own_layers = 0;                   // of a model that is known by name, where the row prints another number
  std::optional<int64_t> exact_parameters;  // printed in full
  std::vector<SequenceChoice> sequences;
  std::vector<RateChoice> rates;
  std::vector<PeakChoice> peaks;
  int64_t tensor_parallel = 0;  // 0: not printed
  std::optional<Recompute> recompute;
  TuningKind tuning = TuningKind::none;
  bool logs_one_decimal = false;     // the framework prints TFLOP/s so: a figure with more decimals is a mean of steps
  std::string counted_by_framework;  // a name that framework_flops() knows, instead of a shape
  std::string missing;               // the first input without which no FLOPs follow; empty when there is none
};
RowInputs read_inputs(const PublishedRow& row);

}  // namespace tprimat::planner

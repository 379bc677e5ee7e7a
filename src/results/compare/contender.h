#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "result/metrics.h"

namespace tprimat::results {

// Runs of one model to participants: repetitions (same folder and name but for _r<k>, same work) become one, and copies
// of one file count once. Letters are assigned later.
std::vector<Contender> gather_contenders(std::vector<LoadedRun> runs);

// Gives each the shortest unique label, and letters A, B, C ... in the current order.
void name_contenders(std::vector<Contender>& contenders);

// A metric over all runs of the participant. One run: its own figure, whose interval covers only the noise within the
// run. Several: the mean over runs with Student's 95 % interval, which covers the spread between runs. A metric that is
// inverse to the step time (tokens/s, TFLOP/s, MFU) takes the harmonic mean: work over time, so that the figures of two
// participants have the ratio of their mean step times.
std::optional<Estimate> read_figure(const Contender& contender, const Metric& metric);

// The same of the runs' own figures. Nothing for none.
// `most`: the largest possible value, where it is less than that of the metric.
std::optional<Estimate> combine_runs(const std::vector<Estimate>& of_runs, const Metric& metric,
                                     std::optional<double> most = {});

// "out/train_nvd_nemo_qwen_r2.json" -> "out/train_nvd_nemo_qwen", "logs/job_r2.log.json" -> "logs/job": the common name
// of repetitions; other names stay whole.
std::string repetition_key(const std::string& path);

// "9 500 to 10 300 tokens/s" if the runs lie more than 5 % apart. Nothing if one has no rate.
struct RateRange {
  double low = 0, high = 0;  // tokens/s
  std::string text() const;
};
std::optional<RateRange> find_disagreement(const Contender& contender);

// Without its folder.
std::string file_name(const LoadedRun& run);

// "TP1 PP2 DP4", known sizes only; may be empty.
std::string describe_layout(const RunResult& result);

// "8 x NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", "unknown device"
std::string describe_device(const RunResult& result);

// The facts of a result that define its work: model, sequence length, batch, precision, optimizer and learning rates,
// as bytes. Two runs with the same bytes did the same work by every rule that forbids a comparison.
std::string state_work(const RunResult& result);

// Indices of runs that represent all of the participant's: each other one states the same facts as one of them.
std::vector<size_t> distinct_runs(const Contender& contender);

}  // namespace tprimat::results

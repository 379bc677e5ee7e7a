#pragma once

#include <optional>
#include <string>

#include "extract/dialects/mlperf_line.h"
#include "extract/extracted_log.h"
#include "extract/log_builder.h"
#include "result/time_to_train.h"

namespace tprimat::logs {

// The run as a whole, whatever its log tells of steps: when it began and ended, samples, target and reached quality.
// The keys are those of github.com/mlcommons/logging (mlperf_logging/mllog/constants.py).
class MlperfRun {
 public:
  void read(const MlperfLine& entry);

  bool is_over() const { return status_ && !is_running_; }
  bool begins_another(const MlperfLine& entry) const;  // a run_start that is no late one of another rank
  void forget_facts();                                 // those of the run before: the next one states its own

  // Nothing without a run_start and without a run_stop. Notes what a reader must know.
  std::optional<TimeToTrain> finish(LogBuilder& log) const;

 private:
  struct Quality {
    Figure value;
    std::optional<int64_t> samples;
    Figure epoch;  // "epoch_num": of bert and gpt3 a count of samples or tokens
  };
  void start(const MlperfLine& entry);
  void stop(const MlperfLine& entry);
  void start_block(const MlperfLine& entry);
  void stop_block(const MlperfLine& entry);
  void evaluate(const MlperfLine& entry);
  void note_doubts(const TimeToTrain& time, LogBuilder& log) const;
  Figure seconds() const;
  std::optional<int64_t> samples(const LoggedFacts& facts) const;
  std::optional<double> rate(std::optional<int64_t> samples) const;

  std::optional<std::string> benchmark_, division_, status_;
  std::optional<int64_t> eval_samples_;
  Figure target_;

  int64_t runs_ = 0;
  bool is_running_ = false, is_resumed_ = false;  // run_start again, without a run_stop between
  Figure start_, stop_;
  std::optional<int64_t> stop_samples_;
  Quality last_;
  Figure block_;                                   // start of the current block
  double blocks_seconds_ = 0;                      // of the complete ones
  int64_t blocks_ = 0;                             // complete ones
  bool begins_at_zero_ = false, is_whole_ = true;  // the first block; every block
};

}  // namespace tprimat::logs

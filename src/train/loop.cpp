#include "train/loop.h"

#include <fmt/format.h>

#include <cmath>

#include "base/clock.h"
#include "base/error.h"

namespace tprimat {
namespace {

StepRecord record_step(int64_t step, double seconds, const TrainSpec& spec, const UpdateReport& report) {
  StepRecord record;
  record.step = step;
  record.time_seconds = seconds;
  record.loss = report.loss;
  record.learning_rate = report.learning_rate;
  record.grad_norm = report.grad_norm;
  record.tokens = spec.tokens_per_step();
  record.unix_time = unix_time_seconds();
  return record;
}

void refuse_not_finite(int64_t step, const UpdateReport& report) {
  if (std::isfinite(report.loss) && std::isfinite(report.grad_norm)) return;
  throw Error(Problem{fmt::format("the {} is {} at step {}", std::isfinite(report.loss) ? "gradient norm" : "loss",
                                  std::isfinite(report.loss) ? report.grad_norm : report.loss, step),
                      "", "lower training.optimizer.learning_rate or lengthen the warm-up"},
              ExitStatus::work_failed);
}

}  // namespace

void run_training(const TrainSpec& spec, Engine& engine, const StepSink& sink) {
  const std::unique_ptr<TokenSource> tokens =
      open_token_source(spec.data, spec.model.vocab_size, spec.sequence_length, spec.seed);
  const double allocated_gb = static_cast<double>(engine.memory().bytes) / 1e9;
  for (int64_t step = 1; step <= spec.steps; ++step) {
    const auto start = SteadyClock::now();
    const UpdateReport report = engine.run_step(step, *tokens);
    StepRecord record = record_step(step, seconds_since(start), spec, report);
    record.memory_allocated_gb = allocated_gb;
    sink(record);
    refuse_not_finite(step, report);
  }
}

}  // namespace tprimat

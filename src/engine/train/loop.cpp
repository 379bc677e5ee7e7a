#include "train/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "data/prefetched_source.h"
#include "train/batch_reader.h"

namespace tprimat::engine {
namespace {

StepRecord record_step(int64_t step, double seconds, const TrainSpec& spec, const UpdateReport& report) {
  StepRecord record;
  record.step = step;
  record.time_seconds = seconds;
  record.loss = report.loss;
  record.learning_rate = report.learning_rate;
  record.grad_norm = report.grad_norm;
  record.tokens = spec.tokens_per_step();
  if (spec.precision == Precision::fp16) record.loss_scale = report.loss_scale;
  if (report.skipped) record.skipped = true;
  record.unix_time = unix_time_seconds();
  return record;
}

// The sign of a NaN means nothing.
std::string describe_not_finite(const char* figure, double value, int64_t step) {
  const char* text = std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "minus infinity";
  return fmt::format("the {} is not finite at step {}: it is {}", figure, step, text);
}

// What went wrong in a step, as a sentence; empty when nothing did.
std::string anomaly_of(int64_t step, const UpdateReport& report) {
  if (report.overflow)
    return fmt::format("step {}: the gradient overflows at loss scale {}; the update is left out and the scale halved",
                       step, report.loss_scale);
  if (std::isnan(report.loss)) return fmt::format("the loss is NaN at step {}", step);
  if (!std::isfinite(report.loss)) return describe_not_finite("loss", report.loss, step);
  if (!std::isfinite(report.grad_norm)) return describe_not_finite("gradient norm", report.grad_norm, step);
  if (report.spike) return fmt::format("the loss jumps to {:.4f} at step {}", report.loss, step);
  return "";
}

bool must_stop(const TrainSpec& spec, const UpdateReport& report) {
  if (report.overflow) return false;  // loss scaling is made for this
  if (!std::isfinite(report.loss) || !std::isfinite(report.grad_norm))
    return spec.anomalies.not_finite == OnAnomaly::stop;
  return report.spike && spec.anomalies.spike == OnAnomaly::stop;
}

void face_anomaly(int64_t step, const TrainSpec& spec, const UpdateReport& report, const TrainingHooks& hooks) {
  const std::string what = anomaly_of(step, report);
  if (what.empty()) return;
  if (must_stop(spec, report))
    throw TrainingStopped({what, "", "lower training.optimizer.learning_rate or lengthen the warm-up"});
  if (hooks.note) hooks.note(what + (report.skipped && !report.overflow ? "; the update is left out" : ""));
}

std::unique_ptr<TokenSource> open_split(const TrainSpec& spec, DataSplit split, int64_t samples) {
  return open_token_source(spec.data, {spec.model.vocab_size, spec.sequence_length, spec.seed, split, samples});
}

// What this rank will read in these steps, ahead of time.
PrefetchPlan plan_reading(const TrainSpec& spec, const RankPlace& place, int64_t first_step, int64_t last_step) {
  const ReadOrder order(spec, place);
  const int64_t first = (first_step - 1) * order.samples_per_step(), end = last_step * order.samples_per_step();
  PrefetchPlan plan;
  plan.sequence_length = spec.sequence_length;
  plan.ahead = static_cast<size_t>(std::clamp<int64_t>(order.samples_per_step(), 8, 256));
  plan.sample_at = [order, first, end](int64_t n) {
    return first + n < end ? std::optional<int64_t>(order.sample_at(first + n)) : std::nullopt;
  };
  return plan;
}

// What the rank that needs most allocated: stages of a pipeline differ.
double heaviest_rank_gb(const Engine& engine) {
  double bytes = static_cast<double>(engine.memory().bytes);
  engine.ranks().world->all_reduce(&bytes, 1, Reduction::max);
  return bytes / 1e9;
}

bool is_due(int64_t step, int64_t interval) { return interval > 0 && step % interval == 0; }

}  // namespace

void run_training(const TrainSpec& spec, Engine& engine, int64_t first_step, const TrainingHooks& hooks) {
  const std::unique_ptr<TokenSource> tokens = open_split(spec, DataSplit::train, spec.steps * spec.global_batch_size);
  const int64_t last_step = std::max(spec.steps, hooks.last_extra_step);
  const PrefetchedSource ready_tokens(*tokens, plan_reading(spec, engine.ranks().place, first_step, last_step));
  const int64_t evaluated = spec.evaluation.batches * spec.global_batch_size;
  std::unique_ptr<TokenSource> validation;
  if (spec.evaluation.interval > 0)
    validation = open_split(spec, DataSplit::valid, (spec.steps / spec.evaluation.interval + 1) * evaluated);
  const double allocated_gb = heaviest_rank_gb(engine);
  for (int64_t step = first_step; step <= last_step; ++step) {
    const auto start = SteadyClock::now();
    const UpdateReport report = engine.run_step(step, ready_tokens);
    StepRecord record = record_step(step, seconds_since(start), spec, report);
    record.memory_allocated_gb = allocated_gb;
    if (step > spec.steps) {
      hooks.extra_step(record);
      continue;
    }
    if (is_due(step, spec.evaluation.interval))
      record.validation_loss =
          engine.evaluate((step / spec.evaluation.interval - 1) * evaluated, spec.evaluation.batches, *validation);
    hooks.step(record);
    face_anomaly(step, spec, report, hooks);
    if (hooks.after_step) hooks.after_step(step);
  }
}

void run_training(const TrainSpec& spec, Engine& engine, const StepSink& sink) {
  run_training(spec, engine, 1, {sink, {}, {}});
}

}  // namespace tprimat::engine

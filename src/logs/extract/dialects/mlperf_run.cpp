#include "extract/dialects/mlperf_run.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "result/quality_target.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

void keep_text(std::optional<std::string>& kept, const Json& value) {
  constexpr size_t k_longest = 200;  // bytes
  if (!kept && value.is_string() && value.text().size() <= k_longest) kept = printable(value.text());
}

// These two count samples, or tokens, in "epoch_num".
bool counts_samples_as_epochs(const std::optional<std::string>& benchmark) {
  return benchmark == "bert" || benchmark == "gpt3";
}

bool divides(double divisor, double number) {
  return divisor >= 1 && number >= divisor && std::fmod(number, divisor) == 0;
}

}  // namespace

void MlperfRun::read(const MlperfLine& entry) {
  const std::string& key = entry.key;
  if (key == "submission_benchmark") keep_text(benchmark_, entry.value);
  if (key == "submission_division") keep_text(division_, entry.value);
  if (key == "target_accuracy" && json_figure(entry.value).finite()) target_ = json_figure(entry.value);
  if (key == "eval_samples" && !eval_samples_) eval_samples_ = json_count(entry.value);
  if (key == "run_start") start(entry);
  if (key == "run_stop") stop(entry);
  if (key == "block_start") start_block(entry);
  if (key == "block_stop") stop_block(entry);
  if (key == "eval_accuracy") evaluate(entry);
  if (key == "eval_start" && block_) is_whole_ = false;  // the block's time includes an evaluation
}

bool MlperfRun::begins_another(const MlperfLine& entry) const {
  return is_over() && (!stop_ || !entry.seconds || *entry.seconds >= *stop_);
}

void MlperfRun::forget_facts() {
  benchmark_.reset(), division_.reset(), eval_samples_.reset();
  target_ = {};
}

// Every rank may log it.
void MlperfRun::start(const MlperfLine& entry) {
  constexpr double k_between_ranks = 60;  // s
  if (is_running_) {
    is_resumed_ = is_resumed_ || !start_ || !entry.seconds || std::abs(*entry.seconds - *start_) > k_between_ranks;
    return;
  }
  ++runs_;
  is_running_ = true, is_resumed_ = false;
  start_ = entry.seconds, stop_ = {};
  status_.reset(), stop_samples_.reset();
  last_ = {}, block_ = {};
  blocks_seconds_ = 0, blocks_ = 0;
  begins_at_zero_ = false, is_whole_ = true;
}

void MlperfRun::stop(const MlperfLine& entry) {
  const Json* status = entry.metadata.find("status");
  if (status == nullptr || !status->is_string()) return;
  const bool is_first = !status_;
  if (is_first || status->text() != "success") status_.reset(), keep_text(status_, *status);  // one abort is enough
  if (!is_first) return;
  stop_ = entry.seconds;
  stop_samples_ = json_count(entry.metadata, "samples_count");
  is_running_ = false;
  if (block_) is_whole_ = false;
  block_ = {};
}

// "samples_count" of a block is the count at its start, or that of the block itself beside "step": 0.
void MlperfRun::start_block(const MlperfLine& entry) {
  if (!is_running_ || block_) return;
  const Json& metadata = entry.metadata;
  if (blocks_ == 0) {
    Figure from = json_figure(metadata, "step");
    for (const char* key : {"samples_count", "first_epoch_num"})
      if (!from) from = json_figure(metadata, key);
    begins_at_zero_ = from.finite() && *from == 0;
  }
  block_ = entry.seconds;
  if (!block_) is_whole_ = false;
}

void MlperfRun::stop_block(const MlperfLine& entry) {
  if (!block_) return;
  const double length = entry.seconds.value_or(-1) - *block_;
  if (length > 0)
    blocks_seconds_ += length, ++blocks_;
  else
    is_whole_ = false;
  block_ = {};
}

void MlperfRun::evaluate(const MlperfLine& entry) {
  const Figure value = json_figure(entry.value);
  if (!value.finite()) return;
  last_ = {value, json_count(entry.metadata, "samples_count"), json_figure(entry.metadata, "epoch_num")};
}

Figure MlperfRun::seconds() const {
  if (is_resumed_ || !start_ || !stop_ || !(*stop_ > *start_)) return {};
  return *stop_ - *start_;
}

std::optional<int64_t> MlperfRun::samples(const LoggedFacts& facts) const {
  if (stop_samples_) return stop_samples_;
  if (last_.samples) return last_.samples;
  const double counted = last_.epoch.value_or(0), batch = static_cast<double>(facts.global_batch_size.value_or(0));
  const auto length = static_cast<double>(facts.sequence_length.value_or(0));
  if (!counts_samples_as_epochs(benchmark_) || !divides(batch, counted) || !(counted < 9e15)) return std::nullopt;
  const bool counts_tokens = divides(batch * length, counted);
  return static_cast<int64_t>(counts_tokens ? counted / length : counted);
}

std::optional<double> MlperfRun::rate(std::optional<int64_t> samples) const {
  const bool fits = seconds() && blocks_seconds_ <= *seconds();
  if (!samples || blocks_ == 0 || !is_whole_ || !begins_at_zero_ || !fits) return std::nullopt;
  return static_cast<double>(*samples) / blocks_seconds_;
}

std::optional<TimeToTrain> MlperfRun::finish(LogBuilder& log) const {
  if (runs_ == 0 && !status_) return std::nullopt;
  const QualityTarget* rule = find_quality_target(benchmark_);
  TimeToTrain result;
  result.benchmark = benchmark_, result.division = division_, result.status = status_;
  result.seconds = seconds().to_optional();
  result.samples = samples(log.log().facts);
  result.eval_samples = eval_samples_;
  result.samples_per_second = rate(result.samples);
  result.reached_quality = last_.value.to_optional();
  if (rule != nullptr) result.higher_is_better = rule->higher_is_better;
  if (target_ || (rule != nullptr && division_ == "closed")) {
    result.target_quality = target_ ? *target_ : rule->target;
    result.target_source = target_ ? "log" : "rules";
  }
  note_doubts(result, log);
  return result;
}

void MlperfRun::note_doubts(const TimeToTrain& time, LogBuilder& log) const {
  if (runs_ > 1) log.note(fmt::format("the log holds {} runs of MLPerf: the time to train is that of the last", runs_));
  if (is_resumed_)
    log.note("run_start is logged again before run_stop, so the training was resumed and has no time to train");
  if (const auto demanded = demanded_target(time))
    log.note(
        fmt::format("target_accuracy is {}, but the closed division demands {} for {}: the time to train is not "
                    "that of the closed division",
                    *time.target_quality, *demanded, *time.benchmark));
  if (!time.is_success()) return;
  if (!time.reached_quality)
    log.note("run_stop states success, but no eval_accuracy is a finite number: the reached quality is unknown");
  if (reaches_target(time) == false)
    log.note(fmt::format("run_stop states success, but the last eval_accuracy, {}, misses the target {}",
                         *time.reached_quality, *time.target_quality));
}

}  // namespace tprimat::logs

#include "extract/dialects/mlperf_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "text/format.h"

namespace tprimat::logs {
namespace {

// The quality at which a training of the closed division ends, as the compliance checker of
// github.com/mlcommons/logging demands it (compliance_checker/training_3.0.0 to training_6.1.0,
// closed_<benchmark>.yaml, key eval_accuracy; read in November 2026).
struct Rule {
  std::string_view benchmark;
  double target;
  bool higher_is_better;
};
constexpr Rule k_rules[] = {
    {"bert", 0.72, true},
    {"deepseekv3_671b", 3.6, false},
    {"dlrm", 0.8025, true},
    {"dlrm_dcnv2", 0.80275, true},
    {"flux1", 0.586, false},
    {"gnn", 0.72, true},
    {"gpt3", 2.69, false},
    {"gpt_oss_20b", 3.34, false},
    {"llama2_70b_lora", 0.925, false},
    {"llama31_405b", 5.6, false},
    {"llama31_8b", 3.3, false},
    {"minigo", 0.5, true},
    {"resnet", 0.759, true},
    {"retinanet", 0.34, true},
    {"rgat", 0.72, true},
    {"rnnt", 0.058, false},
    {"ssd", 0.34, true},
    {"unet3d", 0.908, true},
};

const Rule* find_rule(const std::optional<std::string>& benchmark) {
  const auto* found = std::ranges::find(k_rules, std::string_view(benchmark.value_or("")), &Rule::benchmark);
  return found == std::end(k_rules) ? nullptr : found;
}

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
  const Rule* rule = find_rule(benchmark_);
  const bool is_ruled = rule != nullptr && division_ == "closed";
  TimeToTrain result;
  result.benchmark = benchmark_, result.division = division_, result.status = status_;
  result.seconds = seconds().to_optional();
  result.samples = samples(log.log().facts);
  result.eval_samples = eval_samples_;
  result.samples_per_second = rate(result.samples);
  result.reached_quality = last_.value.to_optional();
  if (rule != nullptr) result.higher_is_better = rule->higher_is_better;
  if (target_ || is_ruled) {
    result.target_quality = target_ ? *target_ : rule->target;
    result.target_source = target_ ? "log" : "rules";
  }
  if (runs_ > 1) log.note(fmt::format("the log holds {} runs of MLPerf: the time to train is that of the last", runs_));
  if (is_resumed_)
    log.note("run_start is logged again before run_stop, so the training was resumed and has no time to train");
  const bool falls_short =
      result.is_success() && result.target_quality && last_.value && rule != nullptr &&
      (rule->higher_is_better ? *last_.value < *result.target_quality : *last_.value > *result.target_quality);
  if (falls_short)
    log.note(fmt::format("run_stop states success, but the last eval_accuracy, {}, misses the target {}", *last_.value,
                         *result.target_quality));
  return result;
}

}  // namespace tprimat::logs

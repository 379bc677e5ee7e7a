#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string>

#include "base/checksum.h"
#include "base/error.h"
#include "extract/dialect.h"
#include "extract/dialects/metric_names.h"
#include "extract/dialects/step_gap.h"
#include "extract/dialects/tfrecord.h"
#include "text/format.h"

namespace tprimat::logs {
namespace {

constexpr int64_t k_last_event_step = int64_t{1} << 53;
constexpr std::string_view k_interval_time = "time_metrics/end_to_end(s)";

// The first bytes are a length of 8 bytes and the checksum of just that: nothing else looks so.
bool is_event_file(std::string_view head) {
  if (head.size() < 12) return false;
  std::string with_length(head.substr(0, 12));
  const uint32_t crc = masked_crc32c(head.substr(0, 8));
  for (size_t i = 0; i < 4; ++i)
    if (static_cast<uint8_t>(with_length[8 + i]) != ((crc >> (8 * i)) & 0xff)) return false;
  return true;
}

// Collects the scalars of a step, which trackers write one by one.
class EventSteps {
 public:
  explicit EventSteps(LogBuilder& log) : log_(log) {}

  void read(const TfEvent& event, int64_t number) {
    if (event.step < 0 || event.step > k_last_event_step) return;
    std::string_view summary = event.summary;
    while (const auto scalar = take_scalar(summary))
      if (scalar->value) read_scalar(event, *scalar, number);
  }

  void finish() {
    flush();
    if (has_interval_times_) correct_first_interval();
    if (log_.log().records == 0 && !unknown_.empty()) {
      std::string names;
      for (const std::string& tag : unknown_) names += (names.empty() ? "" : ", ") + tag;
      log_.note("the file has scalars, but none has the name of a known training figure: " + names);
    }
  }

 private:
  void read_scalar(const TfEvent& event, const TfScalar& scalar, int64_t number) {
    if (is_evaluation_loss(scalar.tag)) {
      log_.add_event({EventKind::evaluation, number, -1, event.step, {}, scalar.value, printable(scalar.tag)});
      return;
    }
    const StepMetric* metric = find_step_metric(scalar.tag);
    if (metric == nullptr) {
      constexpr size_t k_max_names = 8;
      if (unknown_.size() < k_max_names) unknown_.insert(printable(scalar.tag.substr(0, 80)));
      return;
    }
    has_interval_times_ |= scalar.tag == k_interval_time;
    const bool other_step = open_ && (record_.step != event.step || (record_.*metric->member).known());
    if (other_step) flush();
    if (!open_) begin(event, number);
    set_step_metric(record_, *metric, *scalar.value);
  }

  void begin(const TfEvent& event, int64_t number) {
    LogLine line;
    line.number = number;
    if (std::isfinite(event.wall_time) && event.wall_time > 0) line.unix_time = event.wall_time;
    record_ = LogBuilder::start_step(line, event.step);
    open_ = true;
  }

  void flush() {
    if (!open_) return;
    open_ = false;
    const StepGap gap = gaps_.measure(record_);
    record_.mean_of = mean_of_gap(gap);
    constexpr double k_clock_resolution = 0.01;  // s: scalars are written after the step, not at its end
    set_time_from_gap(record_, gap, k_clock_resolution);
    log_.add(record_);
  }

  // torchtitan divides the time since the last record by the log interval, even if fewer steps lie between: at the
  // first step, and at the next record.
  void correct_first_interval() {
    const auto& steps = log_.log().steps;
    if (steps.size() < 3 || steps[0].step != 1) return;
    const int64_t interval = steps[2].step - steps[1].step;
    if (interval < 2 || steps[1].step != interval) return;
    const auto widen = [&](int64_t step, int64_t held) {
      ExtractedStep* record = log_.find(step);
      if (record == nullptr || record->time_source != TimeSource::printed) return;
      record->time_low = record->time_seconds;
      record->time_high = *record->time_seconds * static_cast<double>(interval) / static_cast<double>(held);
    };
    widen(1, 1);
    widen(interval, interval - 1);
    log_.note(fmt::format(
        "torchtitan divides the time since the last record by the log interval of {0}, but the record of step 1 covers "
        "one step and that of step {0} covers {1}: their times are too low by a factor of up to {0}",
        interval, interval - 1));
  }

  LogBuilder& log_;
  ExtractedStep record_;
  bool open_ = false, has_interval_times_ = false;
  GapMeter gaps_;
  std::set<std::string> unknown_;
};

void read_event_file(std::string_view whole, LogBuilder& log) {
  TfRecords records(whole);
  EventSteps steps(log);
  int64_t number = 0;
  while (const auto payload = records.next())
    if (const auto event = parse_tf_event(*payload)) steps.read(*event, ++number);
  if (number == 0)
    throw Error(
        Problem{"holds no complete event", "TensorBoard event file", "copy it again from where it was written"});
  steps.finish();
  if (records.end() == TfRecords::End::cut)
    log.note(
        fmt::format("the event file is truncated: its last record is incomplete, the {} before it were read", number));
  if (records.end() == TfRecords::End::corrupt)
    log.note(fmt::format("a checksum fails after {} events: the rest of the event file was not read", number));
}

}  // namespace

Dialect tfevents_dialect() {
  return {.id = "tfevents",
          .title = "TensorBoard event file",
          .versions = "brain.Event:2",
          .fields = {{"loss", "loss_metrics/global_avg_loss, lm loss, reduced_train_loss, train/loss ..."},
                     {"learning_rate", "lr, learning-rate, train/learning_rate"},
                     {"grad_norm", "grad_norm, grad-norm, train/grad_norm"},
                     {"time_seconds",
                      "time_metrics/end_to_end(s), iteration-time, train_step_timing in s; else "
                      "derived from wall_time"},
                     {"tokens_per_second_per_gpu", "throughput(tps), wps"},
                     {"tflops_per_gpu", "tflops"},
                     {"mfu", "mfu(%)"},
                     {"memory_reserved_gb", "memory/max_reserved(GiB)"},
                     {"global_batch_size", "batch-size"}},
          .is_document = is_event_file,
          .read_document = read_event_file};
}

}  // namespace tprimat::logs

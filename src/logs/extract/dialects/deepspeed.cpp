#include <cmath>
#include <string>
#include <utility>

#include "extract/dialect.h"
#include "extract/dialects/deepspeed_lines.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr double k_largest_step = 1e15;

std::optional<int64_t> step_after(std::string_view text, std::string_view key) {
  const Figure step = number_after(text, key);
  if (!step.finite() || *step < 0 || *step > k_largest_step) return std::nullopt;
  return static_cast<int64_t>(*step);
}

// Two lines report a step: "[Rank 0] step=10, skipped=6, lr=[...]" and then the timer's "epoch=0/
// micro_step=10/global_step=10, RunningAvgSamplesPerSec=...", whose count restarts when a run is resumed. The pipeline
// engine prints a third: "steps: 10 loss: 2.5 iter time (s): 0.5 samples/sec: 12.3".
class DeepspeedReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = line.text;
    if (contains(text, "SamplesPerSec=")) {
      read_timer(line, log);
    } else if (contains(text, "] step=") && contains(text, "skipped=")) {
      read_progress(line, log);
    } else if (contains(text, " iter time (s): ")) {
      read_pipeline(line, log);
    } else if (contains(text, "ppl: ")) {
      read_perplexity(line, log);
    } else if (contains(text, ", loss = ")) {
      read_chat_loss(text);
    } else {
      marks_ += read_deepspeed_line(line, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().records == 0) return;
    if (from_rate_ > 0)
      log.note("DeepSpeed prints no step time: it was derived from CurrSamplesPerSec and the train batch size");
    if (from_stamps_ > 0)
      log.note(
          "DeepSpeed prints no step time: it was derived from the time stamps of neighbouring records, and includes "
          "everything between them");
    if (from_mean_ > 0)
      log.note("DeepSpeed prints no step time: it was derived from the mean rate since the start of the run");
    if (timer_is_apart_)
      log.note(
          "the timer and the step counter start at different steps: the timer's figures belong to the step printed "
          "before");
    if (micro_batch_loss_) log.note("the loss covers one micro-batch of rank 0");
  }

  double confidence(const ExtractedLog& log) const override {
    if (log.records == 0) return marks_ > 0 ? 0.4 : 0.0;
    return log.steps.empty() ? 0.0 : 0.85;  // other trainers' logs have these lines, too
  }

 private:
  void read_progress(const LogLine& line, LogBuilder& log) {
    const auto number = step_after(line.text, "] step=");
    if (!number || *number == 0) return;  // 0 is printed before the first update
    ExtractedStep step = LogBuilder::start_step(line, *number);
    step.learning_rate = number_after(line.text, "lr=[");
    step.loss = loss_;
    micro_batch_loss_ |= loss_.known();
    loss_ = {};
    const StepGap gap = meter_.measure(step);
    const Figure skipped = number_after(line.text, "skipped=");
    const bool all_since =
        gap.steps > 0 && skipped && skipped_ && *skipped - *skipped_ == static_cast<double>(gap.steps);
    step.skipped = all_since || (skipped && *skipped == static_cast<double>(*number));
    step.skipped_updates = skipped_since(skipped, *number);
    skipped_ = skipped;
    set_time_from_stamps(step, gap);
    log.add(step);
    has_progress_ = true;
  }

  void set_time_from_stamps(ExtractedStep& step, const StepGap& gap) {
    set_time_from_gap(step, gap);
    const bool has_time = step.time_source == TimeSource::from_timestamps;
    from_stamps_ += has_time;
    step.with_evaluation = std::exchange(evaluated_, false) && has_time;
  }

  // The counter covers the whole training. A log may begin later, so its first value is used only near the start.
  Figure skipped_since(Figure skipped, int64_t step) const {
    constexpr int64_t k_max_first_record = 100;
    if (!skipped.finite() || *skipped < 0) return {};
    if (skipped_.finite() && *skipped_ <= *skipped) return *skipped - *skipped_;
    return *skipped == 0 || step <= k_max_first_record ? skipped : Figure();
  }

  void read_timer(const LogLine& line, LogBuilder& log) {
    add_deepspeed_memory(line, log);
    ExtractedStep* step = find_timed_step(line, log);
    if (step == nullptr) return;
    if (const Figure gb = deepspeed_memory_after(line.text, k_deepspeed_allocated)) step->memory_allocated_gb = gb;
    const Figure rate = number_after(line.text, "CurrSamplesPerSec=");
    Figure mean_rate = number_after(line.text, "RunningAvgSamplesPerSec=");
    if (!mean_rate) mean_rate = number_after(line.text, ", SamplesPerSec=");
    if (rate.finite() && *rate > 0) step->samples_per_second = rate;
    set_time_from_speed(*step, rate, mean_rate, log);
  }

  // With the batch size, the rate gives the time of this step; without it the mean of the time stamps stays.
  void set_time_from_speed(ExtractedStep& step, Figure rate, Figure mean_rate, LogBuilder& log) {
    const auto batch = log.facts().global_batch_size;
    if (!batch || *batch < 1 || step.time_source == TimeSource::printed) return;
    step.global_batch_size = static_cast<double>(*batch);
    const bool is_current = rate.finite() && *rate > 0;
    if (!is_current && (!mean_rate.finite() || step.time_source != TimeSource::none)) return;
    from_stamps_ -= step.time_source == TimeSource::from_timestamps;
    step.time_source = TimeSource::none;
    step.time_low = step.time_high = {};
    step.mean_of = 1;
    step.single = is_current;
    step.with_evaluation = false;
    set_time_from_rate(step, static_cast<double>(*batch), is_current ? *rate : *mean_rate, 0.0);
    ++(is_current ? from_rate_ : from_mean_);
  }

  // The step that the timer's figures belong to; the timer's own if no other line gives steps.
  ExtractedStep* find_timed_step(const LogLine& line, LogBuilder& log) {
    const auto number = step_after(line.text, "global_step=");
    ExtractedStep* last = log.last();
    if (has_progress_) {
      timer_is_apart_ |= number && last != nullptr && last->step != *number;
      return last;
    }
    if (!number) return nullptr;  // "0/10, SamplesPerSec=": counts micro-steps of an epoch
    ExtractedStep step = LogBuilder::start_step(line, *number);
    set_time_from_stamps(step, meter_.measure(step));
    return &log.add(step);
  }

  void read_pipeline(const LogLine& line, LogBuilder& log) {
    auto number = step_after(line.text, "steps: ");
    if (!number) number = step_after(line.text, "step: ");
    Figure seconds = number_after(line.text, " iter time (s): ");
    if (!number || !seconds.finite() || *seconds <= 0) return;
    ExtractedStep* step = log.find(*number);
    if (step == nullptr) {
      ExtractedStep record = LogBuilder::start_step(line, *number);
      record.mean_of = mean_of_gap(meter_.measure(record));
      step = &log.add(record);
    }
    from_stamps_ -= step->time_source == TimeSource::from_timestamps;
    look_for_milliseconds(*step, *seconds, log);
    step->samples_per_second = number_after(line.text, "samples/sec: ");
    step->loss = number_after(line.text, " loss: ");
    set_pipeline_time(*step, *seconds);
    if (untold_pipeline_step_ < 0) untold_pipeline_step_ = *number;
  }

  // Printed with three decimals.
  void set_pipeline_time(ExtractedStep& step, double printed) const {
    const double unit = in_milliseconds_ ? 1e-3 : 1.0;
    set_printed_time(step, printed * unit, 0.0005 * unit);
    if (step.samples_per_second) step.samples_per_second = *step.samples_per_second / unit;
  }

  // DeepSpeed of early 2022 prints milliseconds there despite the label. The time stamps show it; the first record,
  // which has none before it, is corrected afterwards.
  void look_for_milliseconds(const ExtractedStep& step, double printed, LogBuilder& log) {
    if (in_milliseconds_ || step.time_source != TimeSource::from_timestamps || !step.time_seconds.finite()) return;
    constexpr double k_far_too_long = 100, k_tolerance = 1.1;
    if (printed < k_far_too_long * *step.time_seconds || printed / 1e3 > k_tolerance * *step.time_seconds) return;
    in_milliseconds_ = true;
    log.note("\"iter time (s)\" is in milliseconds in this log, as its time stamps show");
    if (ExtractedStep* first = log.find(untold_pipeline_step_); first != nullptr && first->time_seconds)
      set_pipeline_time(*first, *first->time_seconds);
  }

  // "ppl: 4998.3" or "ppl: 4998.3, loss: 8.5": exp(loss) over the evaluation set.
  void read_perplexity(const LogLine& line, LogBuilder& log) {
    const Figure perplexity = number_after(line.text, "ppl: ");
    if (!perplexity || contains(line.text, "|") || line.rank > 0) return;
    Figure loss = number_after(line.text, "loss: ");
    if (!loss && *perplexity > 0) loss = std::log(*perplexity);
    log.add_evaluation(line, log.last_step(), loss, std::string(trim(line.text)));
    evaluated_ = true;
  }

  // DeepSpeed-Chat: "Epoch: 0, Step: 12, Rank: 0, loss = 2.3", before the step's own lines.
  void read_chat_loss(std::string_view text) {
    const Figure rank = number_after(text, "Rank: ");
    if (contains(text, "Epoch: ") && rank && *rank == 0) loss_ = number_after(text, ", loss = ");
  }

  GapMeter meter_;
  Figure skipped_, loss_;
  int64_t from_rate_ = 0, from_stamps_ = 0, from_mean_ = 0;  // number of steps by the source of their time
  int32_t marks_ = 0;
  int64_t untold_pipeline_step_ = -1;  // the first
  bool in_milliseconds_ = false;
  bool has_progress_ = false, evaluated_ = false, timer_is_apart_ = false, micro_batch_loss_ = false;
};

}  // namespace

Dialect deepspeed_dialect() {
  return {.id = "deepspeed",
          .title = "DeepSpeed",
          .versions = "0.3 (2020) to 0.16",
          .framework = Framework::deep,
          .fields =
              {{"step", "[Rank 0] step=, else global_step="},
               {"time_seconds",
                "iter time (s) of the pipeline engine; derived: train_batch_size / CurrSamplesPerSec, or time stamps"},
               {"loss", "loss: of the pipeline engine; loss = of DeepSpeed-Chat (one micro-batch)"},
               {"learning_rate", "lr=[, the first group"},
               {"samples_per_second", "CurrSamplesPerSec"},
               {"memory_allocated_gb", "MemAllocated (GB of 1024^3 bytes)"},
               {"skipped", "derived: skipped= grew as fast as step="}},
          .anchors =
              both(deepspeed_line_anchors(), {"SamplesPerSec=", "] step=", " iter time (s): ", "ppl: ", ", loss = "}),
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<DeepspeedReader>(); }};
}

}  // namespace tprimat::logs

#include <string>

#include "extract/dialect.h"
#include "extract/dialects/megatron_record.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

// "Step Time : 81.04s GPU utilization: 74.4MODEL_TFLOP/s/GPU": the "utilization" is a rate of work, not a percentage.
struct SpeedLine {
  Figure seconds, tflops_per_gpu;
};

std::optional<SpeedLine> parse_speed_line(std::string_view text) {
  auto rest = text_after(text, "Step Time : ");
  if (!rest) return std::nullopt;
  SpeedLine speed{take_number(*rest), number_after(*rest, "GPU utilization: ")};
  if (!speed.seconds.finite() || *speed.seconds <= 0 || !contains(*rest, "TFLOP/s/GPU")) return std::nullopt;
  return speed;
}

void set_speed(const SpeedLine& speed, ExtractedStep& step) {
  if (!step.time_seconds) set_printed_time(step, speed.seconds, 0.005);  // two decimals are printed
  if (!step.tflops_per_gpu) step.tflops_per_gpu = speed.tflops_per_gpu;
}

// Rank 0 prints the speed, then the last rank the iteration record that holds the step's number. Without these records
// the speed lines are counted.
class BridgeReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (const auto speed = parse_speed_line(line.text)) {
      if (waiting_) count_waiting(log);
      speed_lines_ += 1;
      waiting_ = *speed;
      waiting_line_ = line;
      waiting_line_.text = {};
      return false;
    }
    const int64_t before = log.log().records;
    const bool wants_more = records_->read_line(line, log);
    pair_record(before, log);
    return wants_more;
  }

  void finish(LogBuilder& log) override {
    const int64_t before = log.log().records;
    records_->finish(log);
    pair_record(before, log);
    if (waiting_) count_waiting(log);
    if (counted_ > 0) log.note("no line gives step numbers: the \"Step Time\" lines were counted from 1");
    if (unpaired_ > 0)
      log.note(std::to_string(unpaired_) + " \"Step Time\" lines had no iteration record and were ignored");
  }

  double confidence(const ExtractedLog& log) const override {
    return log.steps.empty() || speed_lines_ == 0 ? 0.0 : 0.98;
  }

 private:
  void pair_record(int64_t records_before, LogBuilder& log) {
    if (log.log().records == records_before) return;
    numbered_ = true;
    if (waiting_ && log.last() != nullptr) set_speed(*waiting_, *log.last());
    waiting_.reset();
  }

  // The waiting speed line has no record.
  void count_waiting(LogBuilder& log) {
    if (numbered_) {
      ++unpaired_;
    } else {
      ExtractedStep step = LogBuilder::start_step(waiting_line_, ++counted_);
      set_speed(*waiting_, step);
      log.add(step);
    }
    waiting_.reset();
  }

  std::unique_ptr<LogReader> records_ = make_megatron_reader(MegatronFlavour::megatron);
  std::optional<SpeedLine> waiting_;
  LogLine waiting_line_;
  int64_t speed_lines_ = 0, counted_ = 0, unpaired_ = 0;
  bool numbered_ = false;  // iteration records were seen
};

}  // namespace

Dialect megatron_bridge_dialect() {
  Dialect dialect{.id = "megatron_bridge",
                  .title = "Megatron-Bridge",
                  .versions = "2025 to 26.06",
                  .framework = Framework::nemo,
                  .fields = {{"step", "iteration; where no record gives it, \"Step Time\" lines are counted from 1"},
                             {"time_seconds", "elapsed time per iteration (ms), else Step Time"},
                             {"tflops_per_gpu", "throughput per GPU (TFLOP/s/GPU), else \"GPU utilization\" (a rate)"}},
                  .anchors = {"Step Time : ", "iteration "},
                  .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<BridgeReader>(); }};
  for (const FieldNote& field : megatron_fields())
    if (field.name != "step" && field.name != "time_seconds" && field.name != "tflops_per_gpu")
      dialect.fields.push_back(field);
  return dialect;
}

}  // namespace tprimat::logs

#include <algorithm>
#include <limits>
#include <string>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

struct Iteration {
  int64_t number = 0, step = 0;
  Figure loss, seconds;
  bool updates = false;  // an optimizer step ends it
};

// "Epoch 1 | iter 2 step 1 | loss train: 1.660, val: n/a | iter time: 548.72 ms (step)"; in 2023 "iter 2 step 1: loss
// 1.6601, iter time: 548.72ms (optimizer.step)".
std::optional<Iteration> read_iteration(std::string_view text) {
  if (!skip_past(text, "iter ")) return std::nullopt;
  const auto number = parse_whole(text.substr(0, text.find(' ')));
  const auto after = text_after(text, " step ");
  const auto step = after ? parse_whole(after->substr(0, after->find_first_of(" :"))) : std::nullopt;
  const Figure milliseconds = number_after(text, "iter time: ");
  if (!number || !step || *number < 0 || *step < 0 || !milliseconds) return std::nullopt;
  Iteration iteration{*number, *step, number_after(text, "loss train: "), {}, false};
  if (!iteration.loss) iteration.loss = number_after(text, "loss ");
  if (milliseconds.finite() && *milliseconds > 0) iteration.seconds = *milliseconds / 1e3;
  iteration.updates = contains(text, "(step)") || contains(text, "(optimizer.step)");
  return iteration;
}

class LitgptReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (const auto iteration = read_iteration(line.text)) {
      add_iteration(line, *iteration, log);
    } else if (contains(line.text, "val loss ")) {
      add_evaluation(line, log);
    } else {
      read_totals(line, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().records == 0) return;
    log.note("LitGPT prints one line per micro-batch: the time of a step is the sum of its lines");
    if (unknown_ > 0)
      log.note("if lines of a step are missing, its time is not known: \"iter time\" covers only the last micro-batch");
    if (left_over_ > 0)
      log.note("the log ends inside a step: " + std::to_string(left_over_) + " micro-batches have no update");
  }

  double confidence(const ExtractedLog& log) const override { return log.records > 0 ? 0.95 : marks_ > 1 ? 0.4 : 0; }

 private:
  void add_iteration(const LogLine& line, const Iteration& iteration, LogBuilder& log) {
    const bool follows = last_ < 0 ? iteration.number <= 1 : iteration.number == last_ + 1;
    if (!follows) whole_ = false;
    last_ = iteration.number;
    ++left_over_;
    if (iteration.seconds)
      seconds_ += *iteration.seconds;
    else
      whole_ = false;
    if (!iteration.updates) return;
    ExtractedStep record = LogBuilder::start_step(line, iteration.step);
    record.loss = iteration.loss;
    record.reports = static_cast<int32_t>(std::min<int64_t>(left_over_, std::numeric_limits<int32_t>::max()));
    if (whole_) {
      set_printed_time(record, seconds_);
    } else {
      ++unknown_;
    }
    if (log.facts().global_batch_size) record.global_batch_size = static_cast<double>(*log.facts().global_batch_size);
    log.add(record);
    seconds_ = 0, left_over_ = 0, whole_ = true;
  }

  // "iter 600: val loss 2.1234, val time: 12345.67 ms"
  void add_evaluation(const LogLine& line, LogBuilder& log) {
    if (!contains(line.text, "iter ") || !contains(line.text, "val time")) return;
    const Figure milliseconds = number_after(line.text, "val time: ");
    log.add_evaluation(line, log.last_step(), number_after(line.text, "val loss "), std::string(line.text),
                       milliseconds ? Figure(*milliseconds / 1e3) : Figure());
  }

  void read_totals(const LogLine& line, LogBuilder& log) {
    const std::string_view text = line.text;
    if (contains(text, "Memory used: ")) {  // max_memory_allocated / 1e9
      ++marks_;
      log.add_memory(line.rank, MemoryKind::peak_allocated, *gb_after(text, "Memory used: "));
    } else if (const auto time = text_after(text, "Training time: ")) {
      ++marks_;
      log.set_total("Training time", std::string(trim(*time)));
    } else if (const auto count = text_after(text, "trainable parameters: ")) {
      ++marks_;  // two lines: trainable, and non-trainable
      (contains(text, "non-trainable") ? frozen_ : trainable_) = parse_whole(*count);
      if (trainable_ && frozen_) log.facts().parameters = *trainable_ + *frozen_;
    } else {
      keep_first(log.facts().parameters, count_after(text, "Total parameters: "));
      keep_first(log.facts().micro_batch_size, count_after(text, "micro_batch_size="));
      keep_first(log.facts().global_batch_size, count_after(text, "global_batch_size="));
    }
  }

  int64_t last_ = -1;      // number of the line before
  double seconds_ = 0;     // of the lines since the last update
  int64_t left_over_ = 0;  // their number
  bool whole_ = true;      // none of them is missing
  int64_t unknown_ = 0, marks_ = 0;
  std::optional<int64_t> trainable_, frozen_;  // parameters
};

}  // namespace

Dialect litgpt_dialect() {
  return {.id = "litgpt",
          .title = "LitGPT",
          .versions = "2023 (lit-gpt) to 2025",
          .fields = {{"step", "step, of the lines that end in (step) or (optimizer.step)"},
                     {"loss", "loss train:"},
                     {"time_seconds", "sum of iter time: over the step's lines"}},
          .evaluation_in_times = false,
          .anchors = {"iter time: ", "val loss ", "Memory used: ", "Training time: ", "trainable parameters: ",
                      "Total parameters: ", "micro_batch_size=", "global_batch_size="},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<LitgptReader>(); }};
}

}  // namespace tprimat::logs

#include <limits>

#include "extract/dialect.h"
#include "extract/dialects/nemo_lines.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr int k_nemo2_digits = 4;  // NeMo's ProgressPrinter writes "{val:.4}"

// One "key: value" of "Training epoch 0, iteration 5/19 | lr: 8.996e-07 | global_step: 5 | ...".
constexpr NamedFigure k_step_fields[] = {
    {"lr", &ExtractedStep::learning_rate},
    {"reduced_train_loss", &ExtractedStep::loss},
    {"grad_norm", &ExtractedStep::grad_norm},
    {"global_batch_size", &ExtractedStep::global_batch_size},
    {"consumed_samples", &ExtractedStep::samples_seen},
    {"TFLOPS_per_GPU", &ExtractedStep::tflops_per_gpu},
    {"tflops_per_sec_per_gpu", &ExtractedStep::tflops_per_gpu},
};

struct TrainingLine {
  ExtractedStep step;
  int64_t epoch = 0, iteration = -1, total = -1;
  Figure global_step, seconds, validation_loss;
};

void read_field(std::string_view key, std::string_view value, TrainingLine& record) {
  const Figure number = parse_number(value);
  if (!number) return;
  for (const NamedFigure& field : k_step_fields)
    if (key == field.name) record.step.*field.member = number;
  if (key == "global_step") record.global_step = number;
  if (key == "train_step_timing in s") record.seconds = number;
  if (key == "val_loss") record.validation_loss = number;
}

std::optional<TrainingLine> parse_training_line(const LogLine& line) {
  auto rest = text_after(line.text, "Training epoch ");
  if (!rest) return std::nullopt;
  TrainingLine record;
  record.step = LogBuilder::start_step(line, 0);
  record.epoch = parse_whole(*rest).value_or(0);
  if (!skip_past(*rest, "iteration ")) return std::nullopt;
  const size_t bar = rest->find('|');
  const std::string_view position = rest->substr(0, bar);
  record.iteration = parse_whole(position).value_or(-1);
  if (const auto total = text_after(position, "/")) record.total = parse_whole(*total).value_or(-1);
  while (skip_past(*rest, "|")) {
    const std::string_view field = rest->substr(0, rest->find('|'));
    const size_t colon = field.find(": ");
    if (colon != std::string_view::npos) read_field(trim(field.substr(0, colon)), field.substr(colon + 2), record);
  }
  return record;
}

class Nemo2Reader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (const auto record = parse_training_line(line)) {
      add_step(*record, log);
    } else if (contains(line.text, "Validation: iteration ")) {
      if (validation_line_ == 0 && !contains(line.text, "Sanity checking")) validation_line_ = line.number;
    } else {
      read_nemo_line(line, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    add_validation({}, log);
    if (log.log().records == 0) return;
    if (averaged_)
      log.note("NeMo prints means over its log interval: loss, learning rate and step time are means of several steps");
    if (without_global_step_) log.note("the lines have no global_step: steps are counted as epoch x iterations");
  }

  double confidence(const ExtractedLog& log) const override { return log.steps.empty() ? 0.0 : k_own_marks; }

 private:
  static constexpr double k_own_marks = 0.98;

  void add_step(TrainingLine record, LogBuilder& log) {
    const auto number = step_number(record);
    if (!number) return;
    ExtractedStep& step = record.step;
    step.step = *number;
    set_rounded_time(step, record.seconds, k_nemo2_digits);
    add_validation(record.validation_loss, log);
    set_interval(step, log);
    log.add(step);
    if (step.global_batch_size.finite() && step.mean_of == 1 && *step.global_batch_size >= 1 &&
        *step.global_batch_size < 1e9)
      log.facts().global_batch_size = static_cast<int64_t>(*step.global_batch_size);
  }

  std::optional<int64_t> step_number(const TrainingLine& record) {
    constexpr double k_largest = 1e15;
    if (record.global_step.finite() && *record.global_step >= 0 && *record.global_step < k_largest)
      return static_cast<int64_t>(*record.global_step);
    constexpr int64_t k_max = 1'000'000'000;
    if (record.iteration < 0 || record.iteration > k_max || record.epoch < 0 || record.epoch > k_max)
      return std::nullopt;
    without_global_step_ = true;
    const int64_t per_epoch = record.total > 0 && record.total < k_max / 1000 ? record.total + 1 : 0;
    return record.epoch < 1000 ? record.epoch * per_epoch + record.iteration : record.iteration;
  }

  // With log_every_n_steps above 1 the figures are means of the steps since the line before; so is consumed_samples,
  // which is then no longer a count.
  void set_interval(ExtractedStep& step, LogBuilder& log) {
    const int64_t passed = step.step - previous_step_;
    if (previous_step_ >= 0 && passed > 1 && passed < std::numeric_limits<int32_t>::max()) {
      if (lines_ == 1) {
        if (ExtractedStep* first = log.find(previous_step_); first != nullptr && previous_step_ + 1 >= passed)
          make_mean(*first, passed);
      }
      make_mean(step, passed);
    }
    previous_step_ = step.step;
    ++lines_;
  }

  void make_mean(ExtractedStep& step, int64_t steps) {
    step.mean_of = static_cast<int32_t>(steps);
    step.samples_seen = {};
    averaged_ = true;
  }

  void add_validation(Figure loss, LogBuilder& log) {
    if (validation_line_ == 0) return;
    log.add_event({EventKind::evaluation, validation_line_, -1, previous_step_, {}, loss, "validation"});
    validation_line_ = 0;
  }

  int64_t previous_step_ = -1;
  int64_t lines_ = 0;
  int64_t validation_line_ = 0;  // of the first validation line since the last step
  bool averaged_ = false, without_global_step_ = false;
};

}  // namespace

Dialect nemo2_dialect() {
  return {.id = "nemo2",
          .title = "NeMo 2",
          .versions = "24.09 to 25.04",
          .framework = Framework::nemo,
          .fields = {{"step", "global_step, from 0; without it epoch and iteration"},
                     {"time_seconds", "train_step_timing in s, 4 significant digits"},
                     {"loss", "reduced_train_loss"},
                     {"learning_rate", "lr"},
                     {"grad_norm", "grad_norm"},
                     {"global_batch_size", "global_batch_size"},
                     {"samples_seen", "consumed_samples; absent where it is a mean over the log interval"},
                     {"tflops_per_gpu", "TFLOPS_per_GPU"},
                     {"mean_of", "derived: steps since the line before"}},
          .counts_from = 0,
          .anchors = both(nemo_line_anchors(), {"Training epoch ", "Validation: iteration "}),
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<Nemo2Reader>(); }};
}

}  // namespace tprimat::logs

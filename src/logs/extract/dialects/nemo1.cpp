#include <algorithm>
#include <cmath>
#include <string>

#include "extract/dialect.h"
#include "extract/dialects/nemo_lines.h"
#include "extract/dialects/progress_bar.h"

namespace tprimat::logs {
namespace {

// Lightning writes a figure of its bar as "{:.3g}" if that is shorter than the whole number, and pads it with zeros to
// five characters: "49.50" is 49.5, and "2e+3" is anything from 1995 to 2004.
constexpr int k_nemo1_digits = 3;

bool is_rounded(std::string_view figure) { return contains(figure, "e"); }

constexpr NamedFigure k_bar_fields[] = {
    {"reduced_train_loss", &ExtractedStep::loss},
    {"loss", &ExtractedStep::loss},  // Lightning's own, smoothed; taken only without the one above
    {"train_loss", &ExtractedStep::loss},
    {"lr", &ExtractedStep::learning_rate},
    {"grad_norm", &ExtractedStep::grad_norm},
    {"global_batch_size", &ExtractedStep::global_batch_size},
    {"consumed_samples", &ExtractedStep::samples_seen},
};

// The step that a bar's figures belong to. The bar's count advances before its figures change, so they lag by one or
// two.
class StepCounter {
 public:
  std::optional<int64_t> find_step(const ProgressBar& bar) {
    follow_epoch(bar);
    const auto shown = postfix_value(bar.postfix, "global_step");
    if (!shown) return bar.reading.count == 0 ? std::nullopt : std::optional(finished_ + bar.reading.count);
    const auto step = parse_whole(*shown);
    if (!step || *step < 0) return std::nullopt;
    const int64_t counted = finished_ + bar.reading.count;
    if (!is_rounded(*shown)) {
      const int64_t lag = counted - *step;
      lag_ = lag_ ? std::min(*lag_, lag) : lag;
      return step;
    }
    rounded_ = true;
    const double half = half_of_digit(static_cast<double>(*step), k_nemo1_digits);
    if (!lag_ || std::abs(static_cast<double>(counted - *lag_ - *step)) > half) return step;
    return counted - *lag_;
  }

  bool rounded() const { return rounded_; }

 private:
  // The bar restarts with each epoch.
  void follow_epoch(const ProgressBar& bar) {
    constexpr int64_t k_max = 1'000'000'000'000;
    if (!title_.empty() && bar.title != title_) {
      const auto epoch = parse_whole(text_after(bar.title, "Epoch ").value_or(""));
      const auto before = parse_whole(text_after(title_, "Epoch ").value_or(""));
      const bool goes_on = epoch && before && *epoch == *before + 1 && finished_ < k_max;
      finished_ = goes_on ? finished_ + last_count_ : 0;
      if (!goes_on) lag_.reset();
    }
    title_ = std::string(bar.title);
    last_count_ = std::min(bar.reading.count, k_max);
  }

  std::string title_;
  int64_t finished_ = 0;  // counts of earlier epochs
  int64_t last_count_ = 0;
  std::optional<int64_t> lag_;
  bool rounded_ = false;
};

class Nemo1Reader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    std::string_view rest = line.text;
    bool has_bar = false;
    while (const auto bar = take_progress_bar(rest)) {
      has_bar = true;
      const bool is_whole = !line.is_cut || !rest.empty();  // else the number of its step may be truncated
      if (is_training(*bar) && is_whole) read_bar(line, *bar, log);
    }
    read_nemo_line(has_bar ? LogLine{rest, line.number, line.rank, line.ranks, line.unix_time, line.is_cut} : line,
                   log);
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().steps.empty()) return;
    log.note("the figures were read from a progress bar, which shows three digits and may omit steps");
    if (without_timing_)
      log.note("the bar has no train_step_timing: step times are derived from its clock or its mean pace");
    if (counter_.rounded()) log.note("some step numbers are rounded in the log, such as \"2e+3\"");
    if (!nemo_keys_) log.note("these are plain PyTorch Lightning bars without NeMo's figures");
  }

  double confidence(const ExtractedLog& log) const override {
    return log.steps.empty() ? 0.0 : nemo_keys_ ? 0.95 : 0.5;
  }

 private:
  static bool is_training(const ProgressBar& bar) {
    return bar.title.substr(0, 5) == "Epoch" || contains(bar.postfix, "reduced_train_loss=");
  }

  void read_bar(const LogLine& line, const ProgressBar& bar, LogBuilder& log) {
    if (bar.postfix.empty() || bar.postfix == postfix_) return;  // redrawn, nothing new in it
    postfix_ = std::string(bar.postfix);
    const auto number = counter_.find_step(bar);
    if (!number) return;
    ExtractedStep step = LogBuilder::start_step(line, *number);
    bool has_figures = false;
    for (const NamedFigure& field : k_bar_fields) {
      const auto value = postfix_value(bar.postfix, field.name);
      if (!value || step.*field.member) continue;
      step.*field.member = parse_number(*value);
      has_figures |= (step.*field.member).known();
    }
    if (!has_figures) return;
    nemo_keys_ |= contains(bar.postfix, "reduced_train_loss=") || contains(bar.postfix, "train_step_timing");
    if (is_other_run(bar, step, log)) log.begin_attempt(step);
    set_time(bar, step);
    log.add(step);
    if (bar.reading.total > 0 && !log.facts().max_steps && contains(postfix_, "global_step="))
      log.facts().max_steps = bar.reading.total;
    read_validation(line, log);
  }

  // Final bars of several runs may stand in one log: the same step with another loss, the same bar with another total.
  bool is_other_run(const ProgressBar& bar, const ExtractedStep& step, LogBuilder& log) const {
    const ExtractedStep* last = log.last();
    if (last == nullptr || !previous_) return false;
    const bool other_loss =
        step.step == last->step && step.loss.finite() && last->loss.finite() && !(step.loss == last->loss);
    const bool other_total = title_ == bar.title && previous_->total != bar.reading.total;
    return other_loss || other_total;
  }

  void set_time(const ProgressBar& bar, ExtractedStep& step) {
    const auto printed = postfix_value(bar.postfix, "train_step_timing in s");
    const Figure seconds = printed ? parse_number(*printed) : Figure();
    if (seconds.finite() && *seconds > 0) {
      set_rounded_time(step, *seconds, k_nemo1_digits);
      step.single = true;
    } else {
      without_timing_ = true;
      const bool goes_on = previous_ && previous_->count < bar.reading.count;
      BarReading from{0, -1, bar.reading.elapsed_seconds, {}};  // no time has passed since: only the pace tells
      if (goes_on) from = *previous_;
      derive_step_time(from, bar.reading, step);
    }
    previous_ = bar.reading;
    title_ = std::string(bar.title);
  }

  void read_validation(const LogLine& line, LogBuilder& log) {
    const auto loss = postfix_value(postfix_, "val_loss");
    if (!loss || *loss == validation_loss_) return;
    validation_loss_ = std::string(*loss);
    log.add_evaluation(line, log.last_step(), parse_number(validation_loss_), "val_loss=" + validation_loss_);
  }

  StepCounter counter_;
  std::string postfix_, validation_loss_, title_;
  std::optional<BarReading> previous_;
  bool nemo_keys_ = false, without_timing_ = false;
};

}  // namespace

Dialect nemo1_dialect() {
  return {
      .id = "nemo1",
      .title = "NeMo 1 progress bar",
      .versions = "23.07 to 24.07",
      .framework = Framework::nemo,
      .fields = {{"step", "global_step, from 0; without it the count of the bar"},
                 {"time_seconds", "train_step_timing in s, 3 significant digits; derived: clock or pace of the bar"},
                 {"loss", "reduced_train_loss, else loss"},
                 {"learning_rate", "lr"},
                 {"grad_norm", "grad_norm"},
                 {"samples_seen", "consumed_samples, 3 significant digits where written as 2.56e+5"}},
      .counts_from = 0,
      .anchors = both(nemo_line_anchors(), {"reduced_train_loss=", "global_step=", "v_num="}),
      .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<Nemo1Reader>(); }};
}

}  // namespace tprimat::logs

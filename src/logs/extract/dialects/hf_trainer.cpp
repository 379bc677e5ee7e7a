#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "extract/common/expert_settings.h"
#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/progress_bar.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

struct WholeLine {
  std::string_view mark;
  std::optional<int64_t> LoggedFacts::*fact;
};
// Of the block "***** Running training *****".
constexpr WholeLine k_sums[] = {
    {"Instantaneous batch size per device = ", &LoggedFacts::micro_batch_size},
    {"Total train batch size (w. parallel, distributed & accumulation) = ", &LoggedFacts::global_batch_size},
    {"Gradient Accumulation steps = ", &LoggedFacts::accumulation_steps},
    {"Total optimization steps = ", &LoggedFacts::max_steps},
};
constexpr std::string_view k_trainable = "Number of trainable parameters = ";
constexpr std::string_view k_running = "***** Running training *****";
constexpr std::string_view k_arguments = "TrainingArguments(";
constexpr int k_max_lines = 400;  // of an argument dump
constexpr int k_max_depth = 100;

bool read_sum(std::string_view text, LogBuilder& log) {
  for (const WholeLine& sum : k_sums) {
    const auto rest = text_after(text, sum.mark);
    if (!rest) continue;
    if (const auto value = count_after(*rest, "")) log.facts().*sum.fact = value;
    return true;
  }
  if (const auto rest = text_after(text, k_trainable)) log.set("trainable parameters", std::string(trim(*rest)));
  return false;
}

std::vector<std::string_view> hf_setting_anchors() {
  std::vector<std::string_view> anchors = {k_running, k_arguments, k_trainable};
  for (const WholeLine& sum : k_sums) anchors.push_back(sum.mark);
  return anchors;
}

// Output of the Hugging Face Trainer before it trains: its arguments, and the sums of "***** Running training *****".
class HfSettingsReader {
 public:
  // Reads the line if it is one of those. True: it continues on the next line, which must be read as well.
  bool read_line(const LogLine& line, LogBuilder& log) {
    if (inside_) return read_arguments(line.text, log);
    starts_ += contains(line.text, k_running);
    if (read_sum(line.text, log)) return false;
    const auto arguments = text_after(line.text, k_arguments);
    if (!arguments) return false;
    inside_ = true;
    depth_ = 0;
    lines_ = 0;
    return read_arguments(*arguments, log);
  }

  bool inside_arguments() const { return inside_; }
  int64_t starts() const { return starts_; }                               // "***** Running training *****" lines
  std::optional<int64_t> logging_steps() const { return logging_steps_; }  // as the arguments say
  bool logs_first_step() const { return logs_first_step_; }

 private:
  // "output_dir='out', fsdp_config={'min_num_params': 0, 'xla': False}, ...)", on one line or one line each.
  bool read_arguments(std::string_view text, LogBuilder& log) {
    size_t begin = 0;
    for (size_t at = 0; at < text.size() && inside_; ++at) {
      const char c = text[at];
      if ((c == '(' || c == '[' || c == '{') && depth_ < k_max_depth) ++depth_;
      if (depth_ == 0 && (c == ',' || c == ')')) {
        add_argument(trim(text.substr(begin, at - begin)), log);
        begin = at + 1;
        inside_ = c != ')';
      } else if ((c == ')' || c == ']' || c == '}') && depth_ > 0) {
        --depth_;
      }
    }
    if (++lines_ > k_max_lines) inside_ = false;
    return inside_;
  }

  void add_argument(std::string_view item, LogBuilder& log) {
    const size_t equal = item.find('=');
    if (equal == std::string_view::npos || equal == 0) return;
    const std::string_view name = trim(item.substr(0, equal)), value = trim(item.substr(equal + 1));
    log.set(std::string(name), std::string(value));
    // Other facts are taken from the settings after the last line.
    if (name == "max_steps") keep_first(log.facts().max_steps, count_after(value, ""));
    if (name == "logging_first_step") logs_first_step_ = value == "True";
    if (name == "logging_steps")
      if (const auto steps = count_after(value, "")) logging_steps_ = steps;
  }

  bool inside_ = false;
  int depth_ = 0;
  int lines_ = 0;
  int64_t starts_ = 0;
  std::optional<int64_t> logging_steps_;
  bool logs_first_step_ = false;
};

// The number behind 'key': in a Python dict; newer versions of Transformers quote it: {'loss': '0.3063', ...}.
Figure dict_number(std::string_view dict, std::string_view key) {
  if (!skip_past(dict, key)) return {};
  dict = trim(dict);
  if (!dict.empty() && (dict.front() == '\'' || dict.front() == '"')) dict.remove_prefix(1);
  return parse_number(dict);
}

// The dict around `key`: from the last "{" before it to the next "}".
std::optional<std::string_view> dict_with(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const size_t open = text.rfind('{', at);
  if (open == std::string_view::npos) return std::nullopt;
  const size_t close = text.find('}', at);
  if (close == std::string_view::npos) return std::nullopt;  // truncated, perhaps within a number
  return text.substr(open, close - open + 1);
}

constexpr std::string_view k_loss = "'loss':", k_runtime = "'train_runtime':", k_evaluation = "'eval_";

constexpr NamedFigure k_log_fields[] = {
    {k_loss, &ExtractedStep::loss},
    {"'grad_norm':", &ExtractedStep::grad_norm},
    {"'learning_rate':", &ExtractedStep::learning_rate},
    {"'num_input_tokens_seen':", &ExtractedStep::tokens_seen},
    {"'num_tokens':", &ExtractedStep::tokens_seen},  // TRL
    {"'tokens_per_second_per_gpu':", &ExtractedStep::tokens_per_second_per_gpu},
    {"'aux_loss':", &ExtractedStep::aux_loss},  // TRL
};

// A dict that is not numbered yet, with the bar before and behind it.
struct LossRecord {
  ExtractedStep step;
  Figure epoch;
  std::optional<BarReading> before, after;
};

bool is_same_figure(Figure a, Figure b) { return *a == *b || (std::isnan(*a) && std::isnan(*b)); }

// The same dict from another rank, or from another callback, which may round it and omit keys.
bool is_copy(const LossRecord& a, const LossRecord& b) {
  const auto fits = [](Figure x, Figure y) {
    return !x || !y || is_same_figure(x, y) || std::abs(*x - *y) <= 1e-3 * std::abs(*x);
  };
  const bool telling = a.step.grad_norm || b.step.grad_norm || a.step.rank != b.step.rank;
  return telling && is_same_figure(a.step.loss, b.step.loss) && is_same_figure(a.epoch, b.epoch) &&
         (!a.step.grad_norm || !b.step.grad_norm || is_same_figure(a.step.grad_norm, b.step.grad_norm)) &&
         fits(a.step.learning_rate, b.step.learning_rate);
}

class HfTrainerReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (settings_.inside_arguments()) return settings_.read_line(line, log);
    std::string_view rest = line.text;
    while (const auto bar = take_progress_bar(rest)) follow_bar(*bar, line, log);
    if (const auto loss = dict_with(line.text, k_loss)) {
      read_loss(line, *loss, log);
    } else if (const auto summary = dict_with(line.text, k_runtime)) {
      read_summary(*summary, log);
    } else if (const auto evaluation = dict_with(line.text, k_evaluation)) {
      read_evaluation(line, *evaluation, log);
    } else {
      return settings_.read_line(line, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    number_waiting(false, log);
    if (records_ == 0) bar_steps_ = bar_.add_steps(log);
    if (!log.facts().max_steps && bar_.reading() && (bar_steps_ > 0 || numbering_ == Numbering::by_bar))
      log.facts().max_steps = bar_.reading()->total;
    if (!summary_.empty()) log.note(summary_);
    if (records_ == 0 && bar_steps_ > 0)
      log.note("the log has no losses: steps and their derived times come from the progress bar");
    if (records_ == 0) return;
    if (numbering_ == Numbering::by_order && settings_.logging_steps())
      log.note("the records have no step numbers: each is the record's position times logging_steps");
    if (numbering_ == Numbering::by_order && !settings_.logging_steps())
      log.note("the log has no step numbers: the records were counted from 1");
    if (numbering_ == Numbering::by_bar)
      log.note("the records have no step numbers: they come from the progress bar beside them");
    if (timed_) log.note("step times are derived: each is the mean between two records, by the bar's clock or pace");
  }

  int64_t steps_waiting() const override { return waiting_ ? 1 : 0; }

  double confidence(const ExtractedLog& log) const override {
    if (records_ > 0 || waiting_ || !summary_.empty()) return 0.95;
    if (bar_steps_ == 0 || log.steps.empty()) return settings_.starts() > 0 && log.facts.max_steps ? 0.5 : 0.0;
    return settings_.starts() > 0 ? 0.8 : 0.0;  // a progress bar alone proves nothing
  }

 private:
  enum class Numbering { undecided, by_bar, by_order };

  void follow_bar(const ProgressBar& bar, const LogLine& line, LogBuilder& log) {
    const int64_t restarts = bar_.restarts();
    if (!bar_.follow(bar, log.facts().max_steps, settings_.starts(), line.number)) return;
    if (bar_.restarts() != restarts) {
      number_waiting(false, log);
      previous_.reset();
      last_step_ = 0;
    }
    if (!waiting_ || waiting_->after) return;
    waiting_->after = bar_.reading();
    number_waiting(false, log);
  }

  void read_loss(const LogLine& line, std::string_view dict, LogBuilder& log) {
    LossRecord record;
    record.step = LogBuilder::start_step(line, 0);
    for (const NamedFigure& field : k_log_fields) {
      if (const Figure number = dict_number(dict, field.name)) record.step.*field.member = number;
    }
    if (!record.step.loss) return;
    if (record.step.aux_loss && !std::exchange(has_aux_loss_, true)) log.set(k_model_mean_loss, k_printed);
    record.epoch = dict_number(dict, "'epoch':");
    if (waiting_ && is_copy(*waiting_, record)) {
      ++waiting_->step.reports;
      if (!waiting_->step.grad_norm) waiting_->step.grad_norm = record.step.grad_norm;
      return;
    }
    number_waiting(true, log);
    bar_.expect_steps();
    record.before = bar_.reading();
    waiting_ = record;
  }

  // Sets the step of the waiting record and adds it. `crowded`: the next record came before the bar moved.
  void number_waiting(bool crowded, LogBuilder& log) {
    if (!waiting_) return;
    LossRecord record = *waiting_;
    waiting_.reset();
    ++records_;
    const std::optional<BarReading> reading = find_reading(record, crowded);
    if (numbering_ == Numbering::undecided) numbering_ = reading ? Numbering::by_bar : Numbering::by_order;
    ExtractedStep& step = record.step;
    const bool is_first = last_step_ == 0;
    step.step = reading ? reading->count : last_step_ + stride(is_first);
    const bool known_gap = reading || settings_.logging_steps();
    if (known_gap) step.mean_of = mean_of_gap({step.step - last_step_, {}});
    if (reading) set_time(*reading, step);
    if (const StepGap gap = meter_.measure(step); known_gap) set_time_from_gap(step, gap);
    if (log.facts().global_batch_size) step.global_batch_size = static_cast<double>(*log.facts().global_batch_size);
    const bool has_time = step.time_source != TimeSource::none;
    step.with_evaluation = evaluated_ && has_time;
    timed_ |= has_time;
    evaluated_ = false;
    last_stride_ = std::max<int64_t>(1, step.step - last_step_);
    last_step_ = step.step;
    log.add(step);
  }

  // The bar's state for the record, if usable: if stdout is written in blocks and the bar goes to stderr, many records
  // follow one state.
  std::optional<BarReading> find_reading(const LossRecord& record, bool crowded) const {
    if (numbering_ == Numbering::by_order || !record.before) return std::nullopt;
    if (crowded && numbering_ == Numbering::undecided) return std::nullopt;
    // The bar is drawn again right behind the dict and has the exact count then; before it, it may lag by 0.1 s.
    constexpr double k_at_once = 1.0;
    const bool again = record.after && record.after->elapsed_seconds - record.before->elapsed_seconds <= k_at_once;
    const BarReading& reading = again ? *record.after : *record.before;
    return reading.count > last_step_ ? std::optional(reading) : std::nullopt;
  }

  int64_t stride(bool is_first) const {
    if (numbering_ == Numbering::by_bar) return last_stride_;
    if (is_first && settings_.logs_first_step()) return 1;
    const int64_t steps = settings_.logging_steps().value_or(1);
    return last_step_ == 1 && steps > 1 ? steps - 1 : steps;
  }

  void set_time(const BarReading& reading, ExtractedStep& step) {
    if (!previous_) previous_ = bar_.first();
    if (previous_) derive_step_time(*previous_, reading, step);
    previous_ = reading;
  }

  void read_summary(std::string_view dict, LogBuilder& log) {
    number_waiting(false, log);
    const Figure seconds = dict_number(dict, k_runtime);
    if (!seconds.finite() || *seconds <= 0 || !summary_.empty()) return;
    summary_ = fmt::format("the Trainer's own total: {} s", *seconds);
    if (const Figure rate = dict_number(dict, "'train_samples_per_second':"))
      summary_ += fmt::format(", {} samples/s", *rate);
    if (const auto steps = log.facts().max_steps; steps && *steps > 0)
      summary_ += fmt::format(", {:.4g} s per step over {} steps", *seconds / static_cast<double>(*steps), *steps);
    else if (const Figure rate = dict_number(dict, "'train_steps_per_second':"); rate.finite() && *rate > 0)
      summary_ += fmt::format(", {} steps/s", *rate);
    summary_ += ", start-up, evaluation and checkpoints included";
  }

  void read_evaluation(const LogLine& line, std::string_view dict, LogBuilder& log) {
    number_waiting(false, log);
    if (dict == last_evaluation_) return;
    last_evaluation_ = std::string(dict);
    log.add_evaluation(line, log.last_step(), dict_number(dict, "'eval_loss':"), last_evaluation_,
                       dict_number(dict, "'eval_runtime':"));
    evaluated_ = true;
  }

  HfSettingsReader settings_;
  TrainingBar bar_;
  GapMeter meter_;
  std::optional<LossRecord> waiting_;
  std::optional<BarReading> previous_;  // of the record before
  Numbering numbering_ = Numbering::undecided;
  std::string summary_, last_evaluation_;
  int64_t records_ = 0, bar_steps_ = 0, last_step_ = 0, last_stride_ = 1;
  bool evaluated_ = false, timed_ = false, has_aux_loss_ = false;
};

}  // namespace

Dialect hf_trainer_dialect() {
  return {
      .id = "hf_trainer",
      .title = "Hugging Face Trainer",
      .versions = "Transformers 4.7 to 5",
      .framework = Framework::tran,
      .fields = {{"step", "derived: count of the progress bar beside the record, else its place times logging_steps"},
                 {"time_seconds", "derived: clock or pace of the progress bar between two records"},
                 {"loss", "'loss', a mean since the record before"},
                 {"learning_rate", "'learning_rate'"},
                 {"grad_norm", "'grad_norm'"},
                 {"tokens_seen", "'num_input_tokens_seen', 'num_tokens'"},
                 {"tokens_per_second_per_gpu", "'tokens_per_second_per_gpu'"},
                 {"aux_loss", "'aux_loss' of TRL, without its coefficient"}},
      .anchors = both(hf_setting_anchors(), {k_loss, k_runtime, k_evaluation, "it/s]", "s/it]"}),
      .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<HfTrainerReader>(); }};
}

}  // namespace tprimat::logs

#include <fmt/format.h>

#include <string>
#include <utility>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

// karpathy/nanoGPT: train.py, model.py and configurator.py print these lines.
namespace tprimat::logs {
namespace {

constexpr int64_t k_last_step = int64_t{1} << 53;

// "iter 250", "step 250": the number behind the word at the start, up to the colon, which is removed too.
std::optional<int64_t> take_number_of(std::string_view& text, std::string_view word) {
  std::string_view rest = text;
  if (!take_literal(rest, word)) return std::nullopt;
  const auto number = take_whole(rest);
  if (!number || *number > k_last_step || !take_literal(rest, ": ")) return std::nullopt;
  text = rest;
  return number;
}

// One "name = value" of a configuration file; Python's comments and quotes are removed. Nothing for an expression.
struct Assignment {
  std::string name, value;
};
std::optional<Assignment> parse_assignment(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string_view name = trim(text.substr(0, equals));
  const bool is_name = !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == name.npos;
  std::string_view value = trim(text.substr(equals + 1));
  if (!is_name || value.empty()) return std::nullopt;
  if (value.front() == '\'' || value.front() == '"') {
    const size_t close = value.find(value.front(), 1);
    if (close == std::string_view::npos) return std::nullopt;
    return Assignment{std::string(name), std::string(value.substr(1, close - 1))};
  }
  value = trim(value.substr(0, value.find('#')));
  if (value.find_first_of(" *+/(") != std::string_view::npos) return std::nullopt;  // 5 * 8
  return Assignment{std::string(name), std::string(value)};
}

// Before the first record the last value counts: a file's, then that of a later file or of the command line.
template <class T>
void keep_fact(std::optional<T>& fact, const std::optional<T>& value, bool is_open) {
  if (is_open)
    fact = value;
  else
    keep_first(fact, value);
}

class NanoGptReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = line.text;
    if (text.starts_with("iter ")) return in_file_ = false, add_step(line, log), false;
    if (text.starts_with("step ")) return in_file_ = false, add_evaluation(line, log), false;
    if (text.starts_with("Overriding config with ")) return in_file_ = true;
    if (text.starts_with("Overriding: ")) return keep_setting(text.substr(12), log), in_file_ = false;
    if (in_file_ && may_be_configuration(text)) return keep_setting(text, log), true;
    in_file_ = false;
    read_header(line, log);
    return false;
  }

  void finish(LogBuilder& log) override {
    keep_sizes(log.facts());
    if (decayed_ && others_) keep_first(log.facts().parameters, *decayed_ + *others_);
    if (log.log().records == 0) return;
    log.note("nanoGPT times an iteration on the host, without waiting for the device: single times may be off");
    log.note("each record has the time of one iteration: the times of those between two records are unknown");
    log.note("nanoGPT's loss is that of the last micro-batch of rank 0, not the mean of the step");
    if (has_mfu_)
      log.note("nanoGPT's MFU is a moving average against the bf16 peak of an A100, whatever the device is");
  }

  double confidence(const ExtractedLog& log) const override {
    if (log.records == 0) return evaluations_ > 0 && marks_ > 0 ? 0.9 : 0;
    return marks_ > 0 ? 0.95 : 0.6;
  }

 private:
  // "iter 100: loss 3.1234, time 135.20ms, mfu 31.20%": the time and the loss of this iteration alone.
  void add_step(const LogLine& line, LogBuilder& log) {
    std::string_view text = line.text;
    const auto step = take_number_of(text, "iter ");
    if (!step || !take_literal(text, "loss ")) return;
    const Figure loss = take_number(text);
    if (!loss || !take_literal(text, ", time ")) return;
    const Figure milliseconds = take_number(text);
    if (!take_literal(text, "ms")) return;
    keep_sizes(log.facts());
    ExtractedStep record = LogBuilder::start_step(line, *step);
    record.single = true;
    record.loss = loss;
    constexpr double k_half_digit = 5e-6;  // s: two decimals of a millisecond
    if (milliseconds.finite()) set_printed_time(record, *milliseconds / 1e3, k_half_digit);
    record.mfu = read_mfu(text);
    if (tokens_) record.tokens = static_cast<double>(*tokens_);
    if (log.facts().global_batch_size) record.global_batch_size = static_cast<double>(*log.facts().global_batch_size);
    record.with_evaluation = evaluated_ == *step;
    record.with_checkpoint = saved_ == *step;
    if (std::exchange(is_resumed_, false) && log.last() != nullptr) log.begin_attempt(record);  // of the same step
    log.add(record);
  }

  // -100 % stands for the first iterations, which it leaves out.
  Figure read_mfu(std::string_view text) {
    const Figure percent = number_after(text, "mfu ");
    if (!percent) return {};
    ++marks_;
    if (!percent.finite() || *percent < 0) return {};
    has_mfu_ = true;
    return *percent / 100;
  }

  // "step 250: train loss 3.1000, val loss 3.2000", before the iteration of that number, whose time includes it.
  void add_evaluation(const LogLine& line, LogBuilder& log) {
    std::string_view text = line.text;
    const auto step = take_number_of(text, "step ");
    if (!step || !text.starts_with("train loss ")) return;
    const Figure loss = number_after(text, ", val loss ");
    if (!loss) return;
    ++evaluations_;
    evaluated_ = *step;
    log.add_evaluation(line, *step, loss, std::string(line.text));
  }

  void read_header(const LogLine& line, LogBuilder& log) {
    const std::string_view text = line.text;
    if (text.starts_with("tokens per iteration will be:")) {
      ++marks_;
      log.mark_start();
      const Figure tokens = grouped_after(text, "will be:");
      if (tokens.finite() && *tokens >= 1 && *tokens < 9e15) tokens_ = static_cast<int64_t>(*tokens);
    } else if (text.starts_with("saving checkpoint to ") && evaluated_ >= 0) {
      saved_ = evaluated_;
      log.add_event({EventKind::checkpoint, line.number, line.rank, saved_, {}, {}, std::string(text)});
    } else if (text.starts_with("Resuming training from ")) {
      is_resumed_ = true;
    } else if (text.starts_with("num decayed parameter tensors:")) {
      ++marks_;
      decayed_ = count_of_parameters(text);
    } else if (text.starts_with("num non-decayed parameter tensors:")) {
      others_ = count_of_parameters(text);
    }
  }

  // "num decayed parameter tensors: 50, with 124,354,560 parameters"
  static std::optional<int64_t> count_of_parameters(std::string_view text) {
    const Figure count = grouped_after(text, ", with ");
    return count.finite() && *count >= 0 && *count < 9e15 ? std::optional(static_cast<int64_t>(*count)) : std::nullopt;
  }

  bool may_be_configuration(std::string_view text) {
    constexpr int k_longest_file = 500;  // lines
    const std::string_view plain = trim(text);
    const bool is_line = plain.empty() || plain.find('=') != plain.npos || plain.starts_with("#") ||
                         plain.starts_with("import ") || plain.starts_with("from ");
    return is_line && ++file_lines_ < k_longest_file;
  }

  // Its own batch is that of a process, and its accumulation is summed over all processes.
  void keep_setting(std::string_view text, LogBuilder& log) {
    const auto setting = parse_assignment(text);
    if (!setting) return;
    const auto& [name, value] = *setting;
    const bool is_sum = name == "gradient_accumulation_steps", is_open = log.log().records == 0;
    const std::string key = is_sum ? "gradient_accumulation_steps of all processes" : name;
    log.set(key, value);
    if (is_open) log.replace_settings({{key, value}});
    if (name == "batch_size") keep_fact(log.facts().micro_batch_size, count_after(value, ""), is_open);
    if (name == "block_size") keep_fact(log.facts().sequence_length, count_after(value, ""), is_open);
    if (name == "dtype") keep_fact(log.facts().precision, precision_named(value), is_open);
    const auto last = name == "max_iters" ? count_after(value, "") : std::nullopt;
    if (last) log.facts().max_steps = *last + 1;  // it counts from 0 and runs this one too
  }

  void keep_sizes(LoggedFacts& facts) const {
    if (tokens_ && facts.sequence_length && *facts.sequence_length > 0 && *tokens_ % *facts.sequence_length == 0)
      keep_first(facts.global_batch_size, *tokens_ / *facts.sequence_length);
  }

  std::optional<int64_t> tokens_, decayed_, others_;
  int64_t evaluated_ = -1, saved_ = -1, evaluations_ = 0, marks_ = 0;
  int file_lines_ = 0;
  bool in_file_ = false, has_mfu_ = false, is_resumed_ = false;
};

}  // namespace

Dialect nanogpt_dialect() {
  return {.id = "nanogpt",
          .title = "nanoGPT",
          .versions = "2023 to 2025, from its source",
          .fields = {{"step", "iter (every log_interval-th, from 0)"},
                     {"loss", "loss (of the last micro-batch of rank 0)"},
                     {"time_seconds", "time ..ms (of this iteration alone)"},
                     {"mfu", "mfu ..%, against an A100; below 0 is unknown"},
                     {"tokens", "tokens per iteration will be:"}},
          .counts_from = 0,
          .evaluation_in_times = false,
          .labels_own_pauses = true,
          .anchors = {", time ", ": train loss ", "tokens per iteration will be:", "Overriding",
                      "saving checkpoint to ", "Resuming training from ", "decayed parameter tensors:"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<NanoGptReader>(); }};
}

}  // namespace tprimat::logs

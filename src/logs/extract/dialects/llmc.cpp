#include <string>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr std::string_view k_table_edge = "+-----------------------+-";

class LlmcReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = line.text;
    if (text.substr(0, k_table_edge.size()) == k_table_edge) {
      log.mark_start();
      return in_table_ = true;
    }
    if (!text.empty() && text.front() == '|') return in_table_ && read_table_row(text, log);
    in_table_ = false;
    if (contains(text, " tok/s")) {
      add_step(line, log);
    } else if (contains(text, "skipping update due to")) {
      skip_next_ = true;
      log.add_event(EventKind::skipped_update, line, text);
    } else if (!add_evaluation(line, log)) {
      read_totals(line, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (smoothed_) log.note("llm.c's tok/s is a moving average from the second step on; the milliseconds are not");
    if (unknown_peak_) log.note("llm.c prints -100 % MFU for a device missing from its table: the MFU is unknown");
  }

  double confidence(const ExtractedLog& log) const override { return log.records > 0 ? 0.95 : marks_ > 1 ? 0.5 : 0; }

 private:
  // "| total batch size      | 524288                                             |"
  bool read_table_row(std::string_view text, LogBuilder& log) {
    const size_t middle = text.find('|', 1);
    if (middle == std::string_view::npos) return true;
    const std::string_view key = trim(text.substr(1, middle - 1));
    std::string_view value = text.substr(middle + 1);
    value = trim(value.substr(0, value.find('|')));
    if (key.empty() || key == "Parameter") return true;
    ++marks_;
    log.set(std::string(key), std::string(value));
    keep_setting(key, value, log.facts());
    return true;
  }

  // Other facts are taken from the settings after the last line.
  void keep_setting(std::string_view key, std::string_view value, LoggedFacts& facts) {
    if (key == "device") {
      keep_first(facts.gpu_name, std::string(value));
      keep_first(facts.platform, platform_of_gpu(value));
    }
    if (key == "peak TFlops") keep_peak(value, facts);
    if (key == "precision") keep_first(facts.precision, precision_named(value));
    if (key == "sequence length T") keep_first(facts.sequence_length, count_after(value, ""));
    if (key == "total batch size") keep_batch(value);
    if (key == "num_parameters") keep_first(facts.parameters, count_after(value, ""));
    if (key == "num_processes") keep_first(facts.gpu_count, count_after(value, ""));
    if (key == "train_num_batches") keep_first(facts.max_steps, count_after(value, ""));
    if (tokens_per_step_ && facts.sequence_length && *facts.sequence_length > 0)
      keep_first(facts.global_batch_size, static_cast<int64_t>(*tokens_per_step_) / *facts.sequence_length);
  }

  void keep_batch(std::string_view value) {
    if (const Figure tokens = parse_number(value); *tokens >= 1 && *tokens < 1e15) tokens_per_step_ = *tokens;
  }

  static void keep_peak(std::string_view value, LoggedFacts& facts) {
    const Figure teraflops = parse_number(value);
    if (teraflops.finite() && *teraflops > 0) keep_first(facts.peak_flops, *teraflops * 1e12);
  }

  // "step    1/10 | loss 11.032358 (+nanz)| norm 22.1414 (+nanz)| lr 8.57e-07 | 2470.01 ms | 40.7% bf16 MFU | 212262
  // tok/s"; the Python trainer: "step    1/10 | train loss 5.27 | norm 30.2 | lr 1.00e-04 | (345.3 ms | 11868 tok/s)".
  void add_step(const LogLine& line, LogBuilder& log) {
    std::string_view text = line.text;
    if (!skip_past(text, "step ")) return;
    const Figure step = take_number(text);
    if (!step.finite() || text.empty() || text.front() != '/' || *step < 0 || *step > 1e15) return;
    const Figure loss = number_after(text, "loss "), milliseconds = number_before(text, " ms");
    if (!loss || !milliseconds) return;
    const auto total = count_after(text, "/");
    keep_first(log.facts().max_steps, total);
    log.facts().state_total(total, line.number);
    ExtractedStep record = LogBuilder::start_step(line, static_cast<int64_t>(*step));
    record.loss = loss;
    record.grad_norm = number_after(text, "norm ");
    record.learning_rate = number_after(text, "| lr ");
    record.tokens_per_second = number_before(text, " tok/s");
    record.mfu = read_mfu(text);
    set_printed_time(record, *milliseconds / 1e3);
    add_sizes(record, log);
    log.add(record);
  }

  void add_sizes(ExtractedStep& record, LogBuilder& log) {
    const LoggedFacts& facts = log.facts();
    if (tokens_per_step_) record.tokens = *tokens_per_step_;
    if (facts.global_batch_size) record.global_batch_size = static_cast<double>(*facts.global_batch_size);
    if (facts.gpu_count && *facts.gpu_count > 0 && record.tokens_per_second)
      record.tokens_per_second_per_gpu = *record.tokens_per_second / static_cast<double>(*facts.gpu_count);
    record.skipped = skip_next_;
    if (skip_next_) record.skipped_updates = 1;
    skip_next_ = false;
    if (log.last() != nullptr) smoothed_ = true;
  }

  Figure read_mfu(std::string_view text) {
    const size_t mark = text.find(" MFU");
    if (mark == std::string_view::npos) return {};
    const size_t bar = text.rfind('|', mark);
    const Figure percent = parse_number(text.substr(bar == std::string_view::npos ? 0 : bar + 1));
    if (percent && *percent < 0) unknown_peak_ = true;
    return percent && *percent >= 0 ? Figure(*percent / 100) : Figure();
  }

  bool add_evaluation(const LogLine& line, LogBuilder& log) {
    const bool loss = line.text.substr(0, 9) == "val loss ";
    if (!loss && line.text.substr(0, 11) != "HellaSwag: ") return false;
    ++marks_;
    log.add_evaluation(line, log.last_step(), number_after(line.text, "val loss "), std::string(line.text));
    return true;
  }

  void read_totals(const LogLine& line, LogBuilder& log) {
    if (const auto used = text_after(line.text, "device memory usage:")) {
      ++marks_;
      log.add_memory(line.rank, MemoryKind::device_used, *parse_bytes_gb(*used));
      if (const Figure total = gb_after(*used, "/ "); total.finite()) keep_first(log.facts().gpu_memory_gb, *total);
    } else if (const auto mean = text_after(line.text, "total average iteration time:")) {
      ++marks_;
      log.set_total("total average iteration time", std::string(trim(*mean)));
    }
  }

  std::optional<double> tokens_per_step_;
  bool in_table_ = false, skip_next_ = false, smoothed_ = false, unknown_peak_ = false;
  int64_t marks_ = 0;
};

class LlmcMainReader : public LogReader {
 public:
  // "s:99 trl:7.1450 lr:0.000086 norm:1.05", "s:250 tel:6.3097", "s:250 eval:0.2912"
  bool read_line(const LogLine& line, LogBuilder& log) override {
    std::string_view text = line.text;
    if (text.substr(0, 2) != "s:") return false;
    text.remove_prefix(2);
    const auto step = parse_whole(text.substr(0, text.find(' ')));
    if (!step || *step < 0) return false;
    if (const Figure loss = number_after(text, " trl:")) {
      add_step(line, *step, log, loss);
    } else if (const Figure test_loss = number_after(text, " tel:")) {
      add_evaluation(line, *step, log, test_loss);
    } else if (number_after(text, " eval:")) {
      add_evaluation(line, *step, log, {});
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().records + evaluations_ == 0) return;
    log.note("main.log of llm.c counts steps from 0 and has no times");
    if (log.log().records == 0) log.note("the log has evaluations only, no training step");
  }

  double confidence(const ExtractedLog& log) const override { return log.records + evaluations_ > 0 ? 0.92 : 0; }

 private:
  static void add_step(const LogLine& line, int64_t step, LogBuilder& log, Figure loss) {
    ExtractedStep record = LogBuilder::start_step(line, step);
    record.loss = loss;
    record.learning_rate = number_after(line.text, " lr:");
    record.grad_norm = number_after(line.text, " norm:");
    log.add(record);
  }

  void add_evaluation(const LogLine& line, int64_t step, LogBuilder& log, Figure loss) {
    ++evaluations_;
    log.add_evaluation(line, step, loss, std::string(line.text));
  }

  int64_t evaluations_ = 0;
};

}  // namespace

Dialect llmc_dialect() {
  return {.id = "llmc",
          .title = "llm.c, console",
          .versions = "mid 2024 to May 2026 (llm.kittens)",
          .fields = {{"step", "step n/total, from 1"},
                     {"loss", "loss; train loss (Python trainer)"},
                     {"grad_norm", "norm"},
                     {"learning_rate", "lr"},
                     {"time_seconds", "ms"},
                     {"mfu", "% bf16 MFU; -100.0 is not known"},
                     {"tokens_per_second", "tok/s, a moving average"},
                     {"tokens", "total batch size (which is in tokens)"}},
          .evaluation_in_times = false,
          .anchors = {" tok/s", "val loss ", "HellaSwag: ", "skipping update due to",
                      "device memory usage:", "total average iteration time:", k_table_edge},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<LlmcReader>(); }};
}

Dialect llmc_main_dialect() {
  return {.id = "llmc_main",
          .title = "llm.c, main.log",
          .versions = "2024 to 2025, C and Python trainer",
          .fields = {{"step", "s:, from 0"},
                     {"loss", "trl:"},
                     {"learning_rate", "lr: (absent in the Python trainer's)"},
                     {"grad_norm", "norm: (absent in the Python trainer's)"}},
          .counts_from = 0,
          .anchors = {" trl:", " tel:", " eval:"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<LlmcMainReader>(); }};
}

}  // namespace tprimat::logs

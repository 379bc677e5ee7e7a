#include <cmath>
#include <string>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

// nanotron rounds to three significant digits and then drops zeros at the end: "12K" is 11950 to 12050.
std::optional<RoundedNumber> three_digits(std::string_view text) {
  auto number = parse_human_number(text.substr(0, text.find('|')));
  if (!number || number->value == 0) return number;
  const double half = 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(number->value))) - 2);
  number->low = number->value - half;
  number->high = number->value + half;
  return number;
}

std::optional<RoundedNumber> rounded_after(std::string_view text, std::string_view key) {
  const auto rest = text_after(text, key);
  return rest ? three_digits(*rest) : std::nullopt;
}

Figure figure_after(std::string_view text, std::string_view key) {
  const auto number = rounded_after(text, key);
  return number ? Figure(number->value) : number_after(text, key);  // which may be NaN
}

class NanotronReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (const auto version = text_after(line.text, "nanotron version:"))
      keep_first(log.facts().framework_version, std::string(trim(*version)));
    const auto after = text_after(line.text, "iteration: ");
    const auto step = after ? parse_whole(*after) : std::nullopt;
    if (!step || *step < 0 || !contains(*after, "time_per_iteration_ms:")) return false;
    const auto total = count_after(*after, " / ");
    keep_first(log.facts().max_steps, total);
    log.facts().state_total(total, line.number);
    add_step(line, *step, *after, log);
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().records > 0)
      log.note("nanotron prints every figure rounded to three digits; step times carry their interval");
  }

  double confidence(const ExtractedLog& log) const override { return log.records > 0 ? 0.95 : 0; }

 private:
  void add_step(const LogLine& line, int64_t step, std::string_view text, LogBuilder& log) {
    ExtractedStep record = LogBuilder::start_step(line, step);
    record.mean_of = mean_of_gap(gaps_.measure(record));
    if (const auto time = rounded_after(text, "time_per_iteration_ms:"); time && time->value > 0) {
      record.time_source = TimeSource::printed;
      record.time_seconds = time->value / 1e3;
      record.time_low = time->low / 1e3;
      record.time_high = time->high / 1e3;
    }
    record.loss = figure_after(text, "lm_loss:");
    record.learning_rate = figure_after(text, "| lr:");
    record.grad_norm = figure_after(text, "grad_norm:");
    record.tokens_seen = figure_after(text, "consumed_tokens:");
    record.tflops_per_gpu = figure_after(text, "model_tflops_per_gpu:");
    add_batch(record, text, log);
    add_rates(record, text, log);
    add_memory(record, text, log);
    log.add(record);
  }

  static void add_batch(ExtractedStep& record, std::string_view text, LogBuilder& log) {
    const auto batch = rounded_after(text, "global_batch_size:");
    if (!batch || batch->value < 1 || batch->value >= 1000) return;  // "1.02K" is not a number of sequences
    record.global_batch_size = batch->value;
    keep_first(log.facts().global_batch_size, static_cast<int64_t>(batch->value));
  }

  static void add_rates(ExtractedStep& record, std::string_view text, LogBuilder& log) {
    const auto all = rounded_after(text, "tokens_per_sec:"), each = rounded_after(text, "tokens_per_sec_per_gpu:");
    if (set_token_rates(record, all, each, log.facts()))
      log.note("the device count follows from tokens_per_sec / tokens_per_sec_per_gpu");
  }

  // In bytes.
  static void add_memory(ExtractedStep& record, std::string_view text, LogBuilder& log) {
    const Figure allocated = figure_after(text, "cuda_memory_allocated:"),
                 reserved = figure_after(text, "cuda_max_memory_reserved:");
    if (allocated) {
      record.memory_allocated_gb = *allocated / 1e9;
      log.add_memory(record.rank, MemoryKind::allocated, *allocated / 1e9);
    }
    if (reserved) {
      record.memory_reserved_gb = *reserved / 1e9;
      log.add_memory(record.rank, MemoryKind::peak_reserved, *reserved / 1e9);
    }
  }

  GapMeter gaps_;
};

}  // namespace

Dialect nanotron_dialect() {
  return {.id = "nanotron",
          .title = "nanotron",
          .versions = "January 2024 to October 2025",
          .fields = {{"step", "iteration: n / total"},
                     {"time_seconds", "elapsed_time_per_iteration_ms, time_per_iteration_ms; three digits"},
                     {"loss", "lm_loss"},
                     {"learning_rate", "lr"},
                     {"grad_norm", "grad_norm"},
                     {"tokens_seen", "consumed_tokens"},
                     {"tokens_per_second", "tokens_per_sec"},
                     {"tokens_per_second_per_gpu", "tokens_per_sec_per_gpu"},
                     {"tflops_per_gpu", "model_tflops_per_gpu"},
                     {"global_batch_size", "global_batch_size, below 1000"},
                     {"memory_allocated_gb", "cuda_memory_allocated (bytes)"},
                     {"memory_reserved_gb", "cuda_max_memory_reserved (bytes)"}},
          .anchors = {"time_per_iteration_ms:", "nanotron version:"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<NanotronReader>(); }};
}

}  // namespace tprimat::logs

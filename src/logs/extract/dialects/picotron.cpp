
#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

std::optional<RoundedNumber> rounded_after_key(std::string_view text, std::string_view key) {
  const auto rest = text_after(text, key);
  return rest ? parse_human_number(rest->substr(0, rest->find_first_of("|/"))) : std::nullopt;
}

class PicotronReader : public LogReader {
 public:
  // "[rank 0] Step: 5     | Loss: 10.1234 | Global batch size:   4.19M | Tokens/s: 100.00K | Tokens/s/GPU:  12.50K |
  // Tokens:  20.97M/1.00B | MFU: 38.12% | Memory usage:  61.52GB"; "Global batch size" counts tokens.
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const auto after = text_after(line.text, "Step: ");
    const auto step = after ? parse_whole(*after) : std::nullopt;
    const Figure loss = after ? number_after(*after, "Loss:") : Figure();
    if (!step || *step < 0 || !loss) return false;
    ExtractedStep record = LogBuilder::start_step(line, *step);
    if (const auto rank = text_after(line.text, "[rank "); rank && record.rank < 0)
      if (const auto number = parse_whole(*rank); number && *number >= 0 && *number < 1 << 24)
        record.rank = static_cast<int32_t>(*number);
    record.loss = loss;
    add_rates(record, *after, log);
    const Figure mfu = number_after(*after, "MFU:");
    if (mfu && *mfu >= 0) record.mfu = *mfu / 100;
    if (const auto memory = text_after(*after, "Memory usage:")) record.memory_reserved_gb = parse_bytes_gb(*memory);
    if (record.memory_reserved_gb) log.add_memory(record.rank, MemoryKind::reserved, *record.memory_reserved_gb);
    log.add(record);
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().records == 0) return;
    log.note("picotron prints no step time: it is tokens per step / (tokens/s), both rounded");
    log.note("picotron's MFU assumes the peak of an H100 (989.5 TFLOP/s) whatever the device is");
  }

  double confidence(const ExtractedLog& log) const override { return log.records > 0 ? 0.95 : 0; }

 private:
  static void add_rates(ExtractedStep& record, std::string_view text, LogBuilder& log) {
    const auto tokens = rounded_after_key(text, "Global batch size:"), rate = rounded_after_key(text, "Tokens/s:"),
               each = rounded_after_key(text, "Tokens/s/GPU:"), seen = rounded_after_key(text, "Tokens:");
    if (tokens) record.tokens = tokens->value;
    if (seen) record.tokens_seen = seen->value;
    if (tokens && rate && rate->low > 0 && tokens->low > 0) {
      record.time_source = TimeSource::from_rate;
      record.time_seconds = tokens->value / rate->value;
      record.time_low = tokens->low / rate->high;
      record.time_high = tokens->high / rate->low;
    }
    if (set_token_rates(record, rate, each, log.facts()))
      log.note("the device count follows from Tokens/s / (Tokens/s/GPU)");
  }
};

}  // namespace

Dialect picotron_dialect() {
  return {.id = "picotron",
          .title = "picotron",
          .versions = "2024 to 2025, from its source",
          .fields = {{"loss", "Loss:"},
                     {"tokens", "Global batch size: (which counts tokens, rounded)"},
                     {"tokens_per_second", "Tokens/s:"},
                     {"tokens_per_second_per_gpu", "Tokens/s/GPU:"},
                     {"tokens_seen", "Tokens:"},
                     {"mfu", "MFU: ..%, against an H100"},
                     {"memory_reserved_gb", "Memory usage: ..GB (1e9 bytes)"},
                     {"time_seconds", "derived: tokens / (tokens/s)"}},
          .anchors = {"Tokens/s/GPU:"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<PicotronReader>(); }};
}

}  // namespace tprimat::logs

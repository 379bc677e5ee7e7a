#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"
#include "text/json.h"

// LLaMA-Factory's trainer_log.jsonl, as LogCallback of src/llamafactory/train/callbacks.py writes it.
namespace tprimat::logs {
namespace {

constexpr double k_last_step = 9e15;

std::optional<Json> parse_record(std::string_view text) {
  constexpr size_t k_longest = 1 << 16;  // bytes
  text = trim(text);
  if (!text.starts_with("{") || !text.ends_with("}") || text.size() > k_longest) return std::nullopt;
  try {
    Json json = parse_json(replace_bare_words(text, [](std::string_view) { return std::string("null"); }), "record");
    return json.is_object() ? std::optional<Json>(std::move(json)) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A null stands for NaN: a figure that a record lacks has no key.
Figure figure_of(const Json& record, std::string_view key) {
  const Json* found = record.find(key);
  if (found == nullptr) return {};
  if (found->is_null()) return std::numeric_limits<double>::quiet_NaN();
  return found->is_number() ? Figure(found->get<double>()) : Figure();
}

// "0:01:40", "1 day, 2:03:04", "12 days, 0:00:00" in seconds.
Figure parse_elapsed(std::string_view text) {
  double days = 0;
  if (const size_t comma = text.find(", "); comma != std::string_view::npos) {
    const auto count = take_whole(text, 6);
    if (!count || !text.starts_with(" day")) return {};
    days = static_cast<double>(*count);
    text = text.substr(text.find(", ") + 2);
  }
  const auto hours = take_whole(text, 6);
  if (!hours || !take_char(text, ':')) return {};
  const auto minutes = take_whole(text, 2);
  if (!minutes || !take_char(text, ':')) return {};
  const auto seconds = take_whole(text, 2);
  if (!seconds || !text.empty()) return {};
  return days * 86400 + static_cast<double>(*hours * 3600 + *minutes * 60 + *seconds);
}

class LlamaFactoryReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const auto record = parse_record(line.text);
    if (!record) return false;
    const Figure number = figure_of(*record, "current_steps");
    if (!number.finite() || *number < 0 || *number > k_last_step || std::floor(*number) != *number) return false;
    const auto step = static_cast<int64_t>(*number);
    const Json* elapsed = record->find("elapsed_time");
    const Figure clock = elapsed != nullptr && elapsed->is_string() ? parse_elapsed(elapsed->text()) : Figure();
    notice_start(clock, log);
    if (record->contains("loss")) add_step(line, *record, step, clock, log);
    if (record->contains("eval_loss"))
      log.add_evaluation(line, step, figure_of(*record, "eval_loss"),
                         fmt::format("eval_loss {}", *figure_of(*record, "eval_loss")));
    add_memory(line, *record, log);
    return false;
  }

  void finish(LogBuilder& log) override {
    if (log.log().records == 0) return;
    if (timed_ > 0)
      log.note(
          "step times are differences of elapsed_time, which has whole seconds: each is off by up to one second "
          "over its interval; the first record of a start has none, because its first step is not known");
    if (of_preferences_) log.note("this training uses rewards or preferences: its loss is not a language model's");
  }

  double confidence(const ExtractedLog& log) const override { return log.records > 0 ? 0.97 : 0; }

 private:
  // The clock counts from the start of the training, also of one that continues a checkpoint.
  void notice_start(Figure clock, LogBuilder& log) {
    if (!clock) return;
    if (last_clock_ && *clock < *last_clock_) {
      log.announce_attempt();
      gaps_ = GapMeter();
    }
    last_clock_ = clock;
  }

  void add_step(const LogLine& line, const Json& json, int64_t step, Figure clock, LogBuilder& log) {
    const Figure total = figure_of(json, "total_steps");
    if (total.finite() && *total >= 1 && *total < k_last_step) {
      log.facts().max_steps = static_cast<int64_t>(*total);
      log.facts().state_total(log.facts().max_steps, line.number);
    }
    ExtractedStep record = LogBuilder::start_step(line, step);
    record.loss = figure_of(json, "loss");
    record.learning_rate = figure_of(json, "lr");
    record.tokens_seen = figure_of(json, "total_tokens");
    constexpr double k_whole_seconds = 1;
    set_time_from_gap(record, gaps_.measure(record, clock), k_whole_seconds);
    timed_ += record.time_source != TimeSource::none;
    of_preferences_ |= json.contains("reward") || json.contains("accuracy");
    log.add(record);
  }

  static void add_memory(const LogLine& line, const Json& json, LogBuilder& log) {
    constexpr double k_gb = k_gib / 1e9;
    if (const Figure gib = figure_of(json, "vram_allocated"); gib.finite())
      log.add_memory(line.rank, MemoryKind::peak_allocated, *gib * k_gb);
    if (const Figure gib = figure_of(json, "vram_reserved"); gib.finite())
      log.add_memory(line.rank, MemoryKind::peak_reserved, *gib * k_gb);
  }

  GapMeter gaps_;
  Figure last_clock_;
  int64_t timed_ = 0;
  bool of_preferences_ = false;
};

}  // namespace

Dialect llama_factory_dialect() {
  return {.id = "llama_factory",
          .title = "LLaMA-Factory, trainer_log.jsonl",
          .versions = "2024 to 2025, from its source",
          .fields = {{"step", "current_steps"},
                     {"loss", "loss"},
                     {"learning_rate", "lr"},
                     {"tokens_seen", "total_tokens"},
                     {"mean_of", "derived: steps since the previous record"},
                     {"time_seconds", "derived: differences of elapsed_time (whole seconds)"}},
          .anchors = {"\"current_steps\""},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<LlamaFactoryReader>(); }};
}

}  // namespace tprimat::logs

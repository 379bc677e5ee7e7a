#include <string>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

class ModdedNanogptReader : public LogReader {
 public:
  // The log begins with the program's source, so "step:{step}/{train_steps}" is not a step.
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = line.text;
    if (contains(text, "train_time:")) {
      add_record(line, log);
    } else if (contains(text, "peak memory")) {
      add_peak_memory(line, log);
    } else if (!text.empty() && text.front() == '|' && contains(text, "  NVIDIA ")) {
      add_device(text, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (times_ > 0)
      log.note("step times are differences of the training clock that the log prints in whole milliseconds");
    if (resets_ > 0)
      log.note("the training clock was reset during the run: it excludes the first steps, and so does step_avg");
  }

  double confidence(const ExtractedLog& log) const override { return log.records + evaluations_ > 0 ? 0.95 : 0; }

 private:
  // "step:1389/1390 train_time:204113ms step_avg:148.02ms", "step:1390/1390 val_loss:3.2785 train_time:204345ms ..."
  void add_record(const LogLine& line, LogBuilder& log) {
    std::string_view text = line.text;
    if (!skip_past(text, "step:")) return;
    const auto step = parse_whole(text.substr(0, text.find('/')));
    const Figure clock = read_clock(text);
    if (!step || *step < 0 || !clock.finite()) return;
    const auto total = count_after(text, "/");
    keep_first(log.facts().max_steps, total);
    log.facts().state_total(total, line.number);
    if (contains(text, "val_")) {  // val_loss:, val_bpb:
      ++evaluations_;
      log.add_evaluation(line, *step, number_after(text, "val_loss:"), std::string(line.text));
      move_clock(line.rank, *step, *clock);
      return;
    }
    ExtractedStep record = LogBuilder::start_step(line, *step);
    record.loss = number_after(text, "train_loss:");
    record.tokens_per_second = number_after(text, "tok_s:");
    set_time(record, *clock);
    log.add(record);
  }

  // In milliseconds: "train_time:204113ms"; some copies print seconds: "train_time:204.113s".
  static Figure read_clock(std::string_view text) {
    if (!skip_past(text, "train_time:")) return {};
    const Figure clock = take_number(text);
    return clock && !text.empty() && text.front() == 's' ? Figure(*clock * 1e3) : clock;
  }

  // The clock stands still during evaluations; after one it also includes the rest of the step before.
  void move_clock(int32_t rank, int64_t step, double milliseconds) {
    gaps_.start_at(rank, step, milliseconds / 1e3);
    last_clock_ = milliseconds;
  }

  void set_time(ExtractedStep& record, double milliseconds) {
    const StepGap gap = gaps_.measure(record, milliseconds / 1e3);
    if (gap.steps > 0 && milliseconds < last_clock_) ++resets_;
    last_clock_ = milliseconds;
    constexpr double k_rounding = 1e-3;  // both readings are rounded to whole milliseconds
    set_time_from_gap(record, gap, k_rounding);
    if (record.time_source != TimeSource::none) ++times_;
  }

  // "peak memory consumption: 31563 MiB"; later "peak memory allocated: 31563 MiB reserved: 33014 MiB".
  static void add_peak_memory(const LogLine& line, LogBuilder& log) {
    for (const std::string_view key : {"peak memory consumption:", "peak memory allocated:"})
      log.add_memory(line.rank, MemoryKind::peak_allocated, *gb_after(line.text, key));
    log.add_memory(line.rank, MemoryKind::peak_reserved, *gb_after(line.text, "reserved:"));
  }

  // A row of nvidia-smi: "|   0  NVIDIA H100 80GB HBM3          On  | ...". It lists the machine, not the run.
  static void add_device(std::string_view row, LogBuilder& log) {
    const size_t start = row.find("NVIDIA ");
    const std::string_view name = row.substr(start, row.substr(start).find("  "));
    if (name.size() > 60 || contains(name, "|")) return;
    keep_first(log.facts().gpu_name, std::string(name));
    keep_first(log.facts().platform, Platform::nvd);
  }

  GapMeter gaps_;
  double last_clock_ = 0;
  int64_t evaluations_ = 0, times_ = 0, resets_ = 0;
};

}  // namespace

Dialect modded_nanogpt_dialect() {
  return {.id = "modded_nanogpt",
          .title = "modded-nanogpt",
          .versions = "October 2024 to 2026",
          .fields = {{"step", "step:n/total"},
                     {"loss", "train_loss: (most versions print none)"},
                     {"time_seconds", "derived: difference of train_time:..ms"}},
          .evaluation_in_times = false,
          .anchors = {"train_time:", "peak memory", "  NVIDIA "},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<ModdedNanogptReader>(); }};
}

}  // namespace tprimat::logs

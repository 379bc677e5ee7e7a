#include <algorithm>
#include <map>
#include <string>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

// Keys of figures that need only a factor.
constexpr NamedFigure k_figures[] = {
    {"loss/train/total:", &ExtractedStep::loss},
    {"l2_norm/grad/global:", &ExtractedStep::grad_norm},
    {"throughput/tokens_per_sec:", &ExtractedStep::tokens_per_second},
    {"throughput/device/tokens_per_sec:", &ExtractedStep::tokens_per_second_per_gpu},
    {"throughput/samples_per_sec:", &ExtractedStep::samples_per_second},
    {"throughput/device/mfu:", &ExtractedStep::mfu},
    {"throughput/device/flops_per_sec:", &ExtractedStep::tflops_per_gpu, 1e-12},
    {"memory/allocated_mem:", &ExtractedStep::memory_allocated_gb},
    {"memory/current_allocated_mem:", &ExtractedStep::memory_allocated_gb},
    {"memory/reserved_mem:", &ExtractedStep::memory_reserved_gb},
    {"memory/current_reserved_mem:", &ExtractedStep::memory_reserved_gb},
};

constexpr std::pair<std::string_view, MemoryKind> k_memory[] = {
    {"memory/allocated_mem:", MemoryKind::allocated},
    {"memory/current_allocated_mem:", MemoryKind::allocated},
    {"memory/peak_allocated_mem:", MemoryKind::peak_allocated},
    {"memory/reserved_mem:", MemoryKind::reserved},
    {"memory/current_reserved_mem:", MemoryKind::reserved},
    {"memory/peak_reserved_mem:", MemoryKind::peak_reserved}};

class ComposerReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = trim(line.text);
    if (const auto batch = text_after(text, "batch="); batch && text.front() == '[') {
      begin_record(line, text, *batch, log);
    } else if (text.substr(0, 6) == "Train ") {
      const auto pending = pending_.find(line.rank);
      if (pending != pending_.end()) read_figure(text.substr(6), pending->second, log);
    } else if (text.substr(0, 5) == "Eval ") {
      if (pending_.count(line.rank) > 0) add_record(line.rank, log);
      add_evaluation(line, text, log);
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    while (!pending_.empty()) add_record(pending_.begin()->first, log);
    if (log.log().records > 0)
      log.note(
          "Composer prints no step time: it is 1 / batches_per_sec (mean of a window) where that is logged, else "
          "the difference of time/train, which is in hours with four decimals (0.36 s)");
  }

  int64_t steps_waiting() const override {
    return std::count_if(pending_.begin(), pending_.end(), [](const auto& each) { return each.second.is_step(); });
  }

  double confidence(const ExtractedLog&) const override { return losses_ > 0 ? 0.95 : 0; }

 private:
  struct Pending {
    ExtractedStep record;
    Figure hours;  // of training so far, evaluations left out
    Figure batches_per_sec;
    bool is_step() const { return record.loss || hours || batches_per_sec; }
  };

  // "[batch=1/300000000]:", "[epoch=1/2][batch=3/100]:"; not "[Eval batch=1/10] Eval on eval data".
  void begin_record(const LogLine& line, std::string_view text, std::string_view batch, LogBuilder& log) {
    if (contains(text, "[Eval")) return;
    const auto step = parse_whole(batch.substr(0, batch.find_first_of("/]")));
    if (!step || *step < 0) return;
    if (pending_.count(line.rank) > 0) add_record(line.rank, log);
    if (!contains(text, "epoch=")) {
      const auto total = count_after(batch, "/");
      keep_first(log.facts().max_steps, total);
      log.facts().state_total(total, line.number);
    }
    constexpr size_t k_max_ranks = 1 << 16;
    if (pending_.size() < k_max_ranks) pending_[line.rank].record = LogBuilder::start_step(line, *step);
  }

  // "loss/train/total: 12.0000"
  void read_figure(std::string_view text, Pending& pending, LogBuilder& log) {
    for (const NamedFigure& figure : k_figures) {
      if (!text.starts_with(figure.name)) continue;
      const Figure value = number_after(text, figure.name);
      if (!value) continue;
      pending.record.*figure.member = *value * figure.factor;
      if (figure.member == &ExtractedStep::loss) ++losses_;
    }
    for (const auto& [key, kind] : k_memory)
      if (text.starts_with(key)) log.add_memory(pending.record.rank, kind, *number_after(text, key));
    if (text.substr(0, 3) == "lr-") pending.record.learning_rate = number_after(text, ": ");
    if (text.substr(0, 11) == "time/train:") pending.hours = number_after(text, ":");
    if (text.substr(0, 26) == "throughput/batches_per_sec") pending.batches_per_sec = number_after(text, ":");
    if (text.substr(0, 37) == "trainer/device_train_microbatch_size:")
      keep_first(log.facts().micro_batch_size, count_after(text, ":"));
  }

  void add_record(int32_t rank, LogBuilder& log) {
    const auto found = pending_.find(rank);
    Pending pending = found->second;
    pending_.erase(found);
    if (!pending.is_step()) return;  // another header
    set_time(pending);
    log.add(pending.record);
  }

  void set_time(Pending& pending) {
    ExtractedStep& record = pending.record;
    if (record.step == 1) gaps_.start_at(record.rank, 0, 0.0);
    const StepGap gap = gaps_.measure(record, pending.hours ? Figure(*pending.hours * 3600) : record.unix_time);
    record.mean_of = mean_of_gap(gap);
    constexpr double k_half_of_last_digit = 5e-5;
    if (pending.batches_per_sec) set_time_from_rate(record, 1, *pending.batches_per_sec, k_half_of_last_digit);
    constexpr double k_clock_resolution = 0.36;  // s: a ten-thousandth of an hour
    if (pending.hours) set_time_from_gap(record, gap, k_clock_resolution);
  }

  // "Eval metrics/eval/LanguageCrossEntropy: 2.3147"
  static void add_evaluation(const LogLine& line, std::string_view text, LogBuilder& log) {
    if (!contains(text, "CrossEntropy:")) return;
    log.add_evaluation(line, log.last_step(), number_after(text, "CrossEntropy:"), std::string(text));
  }

  std::map<int32_t, Pending> pending_;
  GapMeter gaps_;
  int64_t losses_ = 0;
};

}  // namespace

Dialect composer_dialect() {
  return {.id = "composer",
          .title = "Composer, LLM Foundry",
          .versions = "Composer 0.14 and later",
          .fields = {{"step", "[batch=n/total]:, the lines below belong to it"},
                     {"loss", "loss/train/total"},
                     {"learning_rate", "lr-<optimizer>/group0"},
                     {"grad_norm", "l2_norm/grad/global"},
                     {"time_seconds", "derived: 1 / throughput/batches_per_sec, else difference of time/train (hours)"},
                     {"tokens_per_second", "throughput/tokens_per_sec"},
                     {"tokens_per_second_per_gpu", "throughput/device/tokens_per_sec"},
                     {"samples_per_second", "throughput/samples_per_sec"},
                     {"tflops_per_gpu", "throughput/device/flops_per_sec"},
                     {"mfu", "throughput/device/mfu"},
                     {"memory_allocated_gb", "memory/allocated_mem, memory/current_allocated_mem (GB, 1e9 bytes)"},
                     {"memory_reserved_gb", "memory/reserved_mem, memory/current_reserved_mem (GB, 1e9 bytes)"}},
          .anchors = {"batch=", "Train time/", "Train loss/", "Train throughput/", "Train memory/", "Train lr-",
                      "Train l2_norm/", "Train trainer/", "CrossEntropy:"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<ComposerReader>(); }};
}

}  // namespace tprimat::logs

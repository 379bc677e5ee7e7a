#include <algorithm>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/dialects/torchtitan_header.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

// torchtitan's own output, and that under AMD Primus, which may rewrite its record into one line like Megatron's.
enum class TitanFlavour { plain, primus };

// "13.99%" as a fraction; "N/A" where the peak of the device is not known.
Figure percent_after(std::string_view text, std::string_view key) {
  const Figure percent = number_after(text, key);
  return percent && *percent >= 0 ? Figure(*percent / 100) : Figure();
}

class TitanReader : public LogReader {
 public:
  explicit TitanReader(TitanFlavour flavour) : flavour_(flavour) {}

  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = line.text;
    note_marks(text);
    if (line.ranks > 0) keep_first(log.facts().gpu_count, int64_t{line.ranks});
    if (contains(text, "validate step:")) {
      add_validation(line, log);
    } else if (contains(text, "step:") && (contains(text, "memory:") || contains(text, "tflops:"))) {
      add_plain_step(line, log);
    } else if (contains(text, "memory usage/free/total:")) {
      add_rewritten_step(line, log);
    } else if (contains(text, " capacity: ") && !contains(text, "iB memory")) {
      return false;  // of something else
    } else if (read_titan_header(text, log) && !contains(text, "arguments ")) {
      ++header_lines_;
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (rates_ > 0)
      log.note(
          "torchtitan prints no step time: it is global batch size x sequence length / (tps x devices), and the first "
          "step's includes start-up");
    if (stamps_ > 0)
      log.note("the log states no batch, sequence length or device count: step times are differences of time stamps");
  }

  double confidence(const ExtractedLog& log) const override {
    const bool titan = log.records > 0 || header_lines_ > 1 || titan_marks_ > 0;
    if (!titan || (log.records > 0 && records_ == 0)) return 0;
    const double sure = log.records > 0 ? 0.95 : 0.7;
    if (flavour_ == TitanFlavour::plain) return rewritten_ > 0 ? 0.5 : sure;
    return primus_marks_ > 0 || rewritten_ > 0 ? sure + 0.04 : 0.3;
  }

 private:
  void note_marks(std::string_view text) {
    if (contains(text, "[Primus")) ++primus_marks_;
    if (contains(text, "TorchTitan Config") || contains(text, "backends/torchtitan") ||
        contains(text, "TorchtitanPretrainTrainer"))
      ++titan_marks_;
  }

  // "step:  4  loss:  7.62585  grad_norm: 26.6250  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: 314.71  mfu: 13.99%"
  void add_plain_step(const LogLine& line, LogBuilder& log) {
    const auto after = text_after(line.text, "step:");
    const auto step = parse_whole(*after);
    const Figure loss = number_after(*after, "loss:");
    if (!step || *step < 0 || !loss) return;
    ExtractedStep record = LogBuilder::start_step(line, *step);
    record.loss = loss;
    record.grad_norm = number_after(*after, "grad_norm:");
    record.memory_reserved_gb = gb_after(*after, "memory:");
    const Figure tps = grouped_after(*after, "tps:");
    record.tokens_per_second_per_gpu = tps ? tps : grouped_after(*after, "wps:");
    record.tflops_per_gpu = number_after(*after, "tflops:");
    record.mfu = percent_after(*after, "mfu:");
    set_printed_time(record, number_after(*after, "step_time:"));
    add_step(record, 0.5, log);
  }

  // Primus' rewriting: "iteration 1/50 | consumed samples: .. | elapsed time per iteration (ms): .. | memory
  // usage/free/total: reserved/active/(pct%) | .. | loss: .. | grad norm: .. | mfu: ..% |".
  void add_rewritten_step(const LogLine& line, LogBuilder& log) {
    const auto after = text_after(line.text, "iteration ");
    const auto step = after ? parse_whole(*after) : std::nullopt;
    if (!step || *step < 0) return;
    ++rewritten_;
    ExtractedStep record = LogBuilder::start_step(line, *step);
    record.loss = number_after(*after, "| loss:");
    record.grad_norm = number_after(*after, "grad norm:");
    record.samples_seen = number_after(*after, "consumed samples:");
    record.global_batch_size = number_after(*after, "global batch size:");
    record.memory_reserved_gb = gb_after(*after, "memory usage/free/total:");
    record.tflops_per_gpu = number_after(*after, "(TFLOP/s/GPU):");
    record.tokens_per_second_per_gpu = number_after(*after, "(tokens/s/GPU):");
    record.mfu = percent_after(*after, "mfu:");
    set_interval_time(record, number_after(*after, "elapsed time per iteration (ms):"), log);
    add_step(record, 0.05, log);
  }

  // Its "time per iteration" is that of the whole log interval.
  void set_interval_time(ExtractedStep& record, Figure milliseconds, LogBuilder& log) {
    const StepGap gap = intervals_.measure(record);
    const int64_t steps = gap.steps > 0 ? gap.steps : record.step == 1 ? 1 : 0;
    if (!milliseconds.finite() || *milliseconds <= 0 || steps == 0) return;
    record.time_source = TimeSource::printed;
    record.mean_of = mean_of_gap({steps, {}});
    record.time_seconds = *milliseconds / 1e3 / static_cast<double>(steps);
    if (steps > 1)
      log.note(
          "Primus prints the time of the whole log interval as the time per iteration: it was divided by the "
          "interval's steps");
  }

  void add_step(ExtractedStep& record, double half_of_rate, LogBuilder& log) {
    const LoggedFacts& facts = log.facts();
    const StepGap gap = gaps_.measure(record);
    record.mean_of = std::max(record.mean_of, mean_of_gap(gap));
    if (!record.global_batch_size && facts.global_batch_size)
      record.global_batch_size = static_cast<double>(*facts.global_batch_size);
    if (record.global_batch_size && facts.sequence_length)
      record.tokens = *record.global_batch_size * static_cast<double>(*facts.sequence_length);
    set_time(record, gap, half_of_rate, log);
    ++records_;
    if (record.memory_reserved_gb) log.add_memory(record.rank, MemoryKind::peak_reserved, *record.memory_reserved_gb);
    log.add(record);
  }

  // tps is this rank's tokens / (time x ranks that share them), so over all devices it adds up to all tokens.
  void set_time(ExtractedStep& record, const StepGap& gap, double half_of_rate, LogBuilder& log) {
    const auto devices = log.facts().gpu_count;
    if (record.tokens && devices && record.tokens_per_second_per_gpu) {
      const auto count = static_cast<double>(*devices);
      record.tokens_per_second = *record.tokens_per_second_per_gpu * count;
      if (record.time_source == TimeSource::none) ++rates_;
      set_time_from_rate(record, *record.tokens / count, *record.tokens_per_second_per_gpu, half_of_rate);
      return;
    }
    if (record.time_source != TimeSource::none) return;
    set_time_from_gap(record, gap);
    if (record.time_source == TimeSource::none) return;
    ++stamps_;
    record.with_evaluation = gap.steps > 0 && evaluation_step_ >= record.step - gap.steps;
  }

  void add_validation(const LogLine& line, LogBuilder& log) {
    const auto after = text_after(line.text, "validate step:");
    const auto step = parse_whole(*after);
    if (!step || *step < 0) return;
    evaluation_step_ = *step;
    ++header_lines_;
    log.add_evaluation(line, *step, number_after(*after, "loss:"), "validation, step " + std::string(trim(*after)));
  }

  TitanFlavour flavour_;
  GapMeter gaps_, intervals_;
  int64_t evaluation_step_ = -1;  // the step it came after
  int64_t records_ = 0, rewritten_ = 0, rates_ = 0, stamps_ = 0;
  int64_t header_lines_ = 0, titan_marks_ = 0, primus_marks_ = 0;
};

std::unique_ptr<LogReader> make_titan_reader(TitanFlavour flavour) { return std::make_unique<TitanReader>(flavour); }

std::vector<FieldNote> titan_fields() {
  return {{"loss", "loss: (of this step alone)"},
          {"grad_norm", "grad_norm: (absent before spring 2025)"},
          {"memory_reserved_gb", "memory: ..GiB(..%), the most reserved since the record before"},
          {"tokens_per_second_per_gpu", "tps:, wps: (2024)"},
          {"tokens_per_second", "derived: tps x devices of the mesh"},
          {"tflops_per_gpu", "tflops: (absent in 2024)"},
          {"mfu", "mfu: ..%; N/A is not known"},
          {"tokens", "derived: global batch size x sequence length"},
          {"time_seconds", "derived: tokens / (tps x devices), else from time stamps"}};
}

std::vector<std::string_view> titan_anchors() {
  return {"tps: ",
          "wps: ",
          "memory usage/free/total:",
          "validate step:",
          " capacity: ",
          "total parameters",
          "Peak FLOPS used",
          "Trainer is initialized",
          "Training starts at step",
          "Adjusting warmup steps",
          "device mesh with",
          "torchtitan version:",
          "training active"};
}

}  // namespace

Dialect torchtitan_dialect() {
  return {.id = "torchtitan",
          .title = "torchtitan",
          .versions = "2024 (wps) to May 2026",
          .framework = Framework::tita,
          .fields = titan_fields(),
          .evaluation_in_times = false,
          .anchors = titan_anchors(),
          .make_reader = [] { return make_titan_reader(TitanFlavour::plain); }};
}

Dialect primus_torchtitan_dialect() {
  return {
      .id = "primus_torchtitan",
      .title = "AMD Primus, TorchTitan back end",
      .versions = "October 2025 to May 2026",
      .framework = Framework::prim,
      .fields = both(titan_fields(),
                     {{"samples_seen", "consumed samples (rewritten record)"},
                      {"time_seconds", "elapsed time per iteration (ms) (rewritten record), / steps of the interval"}}),
      .evaluation_in_times = false,
      .anchors = both(titan_anchors(), {"[Primus", "TorchTitan Config", "backends/torchtitan",
                                        "TorchtitanPretrainTrainer", "arguments "}),
      .make_reader = [] { return make_titan_reader(TitanFlavour::primus); }};
}

}  // namespace tprimat::logs

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/mlperf_line.h"
#include "extract/dialects/mlperf_run.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"
#include "text/json.h"
#include "text/words.h"

namespace tprimat::logs {
namespace {

// The digits that end right before `end`, unless they end a word: "8x" but not "SD1".
std::optional<int64_t> count_before(std::string_view text, size_t end) {
  size_t start = end;
  while (start > 0 && is_digit(text[start - 1]) && end - start < 6) --start;
  if (start > 0 && std::string_view("x_- ").find(text[start - 1]) == std::string_view::npos) return std::nullopt;
  const auto count = parse_whole(text.substr(start, end - start));
  return count && *count >= 1 ? count : std::nullopt;
}

// Where the name of the device starts.
size_t find_device(std::string_view name) {
  for (const std::string_view mark : {"GB200", "GB300", "GH200", "A100", "H100", "H200", "B200", "B300", "L40", "V100",
                                      "MI250", "MI300", "MI325", "MI350", "MI355"})
    if (const size_t at = name.find(mark); at != std::string_view::npos) return at;
  return std::string_view::npos;
}

// The facts in the name of a submission's platform: "1xXE9685Lx8B200-SXM-180GB", "64xNVIDIA DGX H100",
// "tinybox_8xMI300X".
struct MlperfPlatform {
  std::optional<int64_t> gpu_count;
  std::optional<std::string> gpu_name;
  std::optional<Platform> platform;
};

MlperfPlatform parse_mlperf_platform(std::string_view name) {
  MlperfPlatform result;
  const size_t device = find_device(name);
  if (device == std::string_view::npos) return result;
  const std::string_view gpu = name.substr(device, name.substr(device).find_first_of(" _,"));
  result.gpu_name = std::string(gpu);
  result.platform = platform_of_gpu(gpu);
  // "<systems>x<system>x<devices>" or "<system>_<devices>x": a number at the very start counts systems, not devices.
  size_t end = device;
  if (end > 0 && name[end - 1] == 'x') --end;
  const auto devices = count_before(name, end);
  if (!devices || (end <= 6 && name.find_first_not_of("0123456789") >= end)) return result;
  size_t digits = 0;
  while (digits < name.size() && is_digit(name[digits])) ++digits;
  const bool counts_systems = digits > 0 && digits < name.size() && name[digits] == 'x';
  const auto systems = counts_systems ? count_before(name, digits) : std::optional<int64_t>(1);
  if (systems) result.gpu_count = *systems * *devices;
  return result;
}

// The unit of the "step" beside a figure, which MLPerf's rules leave to the submitter.
enum class CountedAs { undecided, steps, samples, tokens, records };

bool divides(double divisor, double number) {
  return divisor >= 1 && number >= divisor && std::fmod(number, divisor) == 0;
}

// eval_accuracy is a loss for language models and an accuracy for these benchmarks.
bool is_loss(std::string_view benchmark) {
  for (const std::string_view other : {"bert", "resnet", "ssd", "retinanet", "rnnt", "maskrcnn", "unet3d", "dlrm",
                                       "gnn", "stable_diffusion", "flux", "minigo", "ncf", "transformer"})
    if (contains(benchmark, other)) return false;
  return true;
}

Figure first_of(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Figure figure = json_figure(object, key)) return figure;
  return {};
}

class MlperfReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    std::string_view text = line.text;
    while (!text.empty()) {
      const bool any = contains(text, ":::MLLOG");
      if (const auto entry = take_mlperf_line(text)) {
        ++entries_;
        if (waits_for_next_run(*entry)) continue;
        if (entry->key == "run_start" && run_.is_over()) {
          if (run_.begins_another(*entry)) begin_next_run(log);
          read_waiting(log);
        }
        run_.read(*entry);
        read_entry(line, *entry, log);
      } else if (any) {
        ++broken_;
      }
    }
    return false;
  }

  void finish(LogBuilder& log) override {
    if (std::ranges::none_of(waiting_, is_start)) read_waiting(log);
    if (broken_ > 0) log.note(fmt::format("{} :::MLLOG entries are malformed and were ignored", broken_));
    if (log.log().records == 0)
      for (ExtractedStep& block : blocks_) log.add(block);
    else if (!blocks_.empty())
      log.note(fmt::format("means over all steps between two evaluations do not count as steps ({})", blocks_.size()));
    if (ranks_ > 1 && !log.facts().gpu_count) {
      log.facts().gpu_count = ranks_;
      log.note("the device count is the number of init_start lines: every rank logs one");
    }
    note_unit(log);
    log.set_time_to_train(run_.finish(log));
  }

  int64_t steps_waiting() const override { return static_cast<int64_t>(blocks_.size()); }

  double confidence(const ExtractedLog&) const override { return entries_ > 0 ? 0.97 : 0; }

 private:
  void read_entry(const LogLine& line, const MlperfLine& entry, LogBuilder& log) {
    const std::string& key = entry.key;
    if (key == "tracked_stats") {
      if (entry.value.is_object()) add_stats(line, entry, entry.value, log);
    } else if (key == "train_loss") {
      add_stats(line, entry, Json{{"train_loss", entry.value}}, log);
    } else if (key == "eval_accuracy") {
      add_evaluation(line, entry, log);
    } else if (key == "run_start") {
      start_clock(line, entry, log);
    } else if (key == "eval_start") {
      evaluation_start_ = entry.seconds;
    } else if (key == "run_stop") {
      stop_run(line, entry, log);
    } else if (is_start(entry) || is_setting(entry)) {
      read_header(entry, log);
    }
  }

  void read_header(const MlperfLine& entry, LogBuilder& log) {
    if (!is_start(entry)) return keep_setting(entry.key, entry.value, log);
    ++ranks_;
    log.mark_start();
  }

  static bool is_start(const MlperfLine& entry) { return entry.key == "init_start"; }
  static bool is_setting(const MlperfLine& entry) {
    constexpr std::string_view k_others[] = {"tracked_stats", "train_loss", "eval_accuracy",
                                             "run_start",     "eval_start", "run_stop"};
    return !is_start(entry) && std::ranges::find(k_others, entry.key) == std::end(k_others) &&
           !entry.value.is_structured() && !entry.value.is_null();
  }

  // What a run states before its run_start.
  static bool is_fact(const MlperfLine& entry) {
    constexpr std::string_view k_facts[] = {"submission_benchmark", "submission_division", "submission_platform",
                                            "target_accuracy",      "global_batch_size",   "max_sequence_length"};
    return std::ranges::find(k_facts, entry.key) != std::end(k_facts);
  }

  // Behind run_stop: it belongs to the next run, if a run_start follows, else to the one that ended.
  bool waits_for_next_run(const MlperfLine& entry) {
    constexpr size_t k_max_count = 4096;
    if (!run_.is_over() || waiting_.size() >= k_max_count || !(is_start(entry) || is_setting(entry))) return false;
    waiting_.push_back(entry);
    return true;
  }

  // Facts of the run before count only if the next one states none.
  void begin_next_run(LogBuilder& log) {
    if (log.log().records == 0 && blocks_.empty()) log.forget_end_of_run();
    if (std::ranges::any_of(waiting_, is_start)) ranks_ = 0;
    if (std::ranges::any_of(waiting_, is_fact)) {
      run_.forget_facts();
      log.forget_settings();
      LoggedFacts& facts = log.facts();
      facts.global_batch_size.reset(), facts.sequence_length.reset(), facts.model.reset();
      facts.gpu_count.reset(), facts.gpu_name.reset(), facts.platform.reset();
    }
  }

  void read_waiting(LogBuilder& log) {
    for (const MlperfLine& entry : std::exchange(waiting_, {})) {
      run_.read(entry);
      read_header(entry, log);
    }
  }

  void keep_setting(const std::string& key, const Json& value, LogBuilder& log) {
    const std::string text = print_json_bare(value);
    log.set(key, text);
    // Other facts are taken from the settings after the last line.
    LoggedFacts& facts = log.facts();
    if (key == "global_batch_size") keep_first(facts.global_batch_size, count_after(text, ""));
    if (key == "max_sequence_length") keep_first(facts.sequence_length, count_after(text, ""));
    if (key == "submission_benchmark") keep_first(facts.model, text);
    if (key == "submission_platform") keep_platform(text, facts);
  }

  static void keep_platform(const std::string& name, LoggedFacts& facts) {
    const MlperfPlatform platform = parse_mlperf_platform(name);
    keep_first(facts.gpu_count, platform.gpu_count);
    keep_first(facts.gpu_name, platform.gpu_name);
    keep_first(facts.platform, platform.platform);
  }

  // {"train_step_time": 54.7, "reduced_train_loss": 7.73} with {"step": 1152.0}; {"train_loss": 2.07} with
  // {"samples_count": 80, "lr": 5e-4, "step": 10}; {"throughput": 2.03} with {"step": 1536}.
  void add_stats(const LogLine& line, const MlperfLine& entry, const Json& stats, LogBuilder& log) {
    const Figure loss = first_of(stats, {"reduced_train_loss", "train_loss"});
    const Figure seconds = first_of(stats, {"train_step_timing", "train_step_time"});
    const Figure rate = json_figure(stats, "throughput");
    if (!loss && !seconds && !rate) return;
    const auto step = step_number(entry.metadata, log, loss.known());
    if (!step) return;
    ExtractedStep record = LogBuilder::start_step(line, *step);
    if (entry.seconds) record.unix_time = entry.seconds;
    record.loss = loss;
    record.learning_rate = json_figure(entry.metadata, "lr");
    if (log.facts().global_batch_size) record.global_batch_size = static_cast<double>(*log.facts().global_batch_size);
    if (record.global_batch_size && log.facts().sequence_length)
      record.tokens = *record.global_batch_size * static_cast<double>(*log.facts().sequence_length);
    set_printed_time(record, seconds);
    if (loss)
      add_step(record, log);
    else
      keep_block(record, rate, log);
  }

  void add_step(ExtractedStep& record, LogBuilder& log) {
    const StepGap gap = gaps_.measure(record);
    record.mean_of = mean_of_gap(gap);
    constexpr double k_stamp_resolution = 1e-3;
    if (record.time_source == TimeSource::none) {
      set_time_from_gap(record, gap, k_stamp_resolution);
      record.with_evaluation = evaluated_since_step_ && record.time_source != TimeSource::none;
    }
    evaluated_since_step_ = false;
    log.add(record);
  }

  // A mean over all steps since the evaluation before. It is a record only if the log has nothing finer.
  void keep_block(ExtractedStep& record, Figure rate, LogBuilder& log) {
    constexpr size_t k_max_blocks = 1 << 16;
    if (rate.finite() && *rate > 0) {
      const double per_sample =
          unit_ == CountedAs::tokens ? static_cast<double>(log.facts().sequence_length.value_or(0)) : 1.0;
      if (per_sample > 0) record.samples_per_second = *rate / per_sample;
      if (record.global_batch_size && record.samples_per_second)
        set_time_from_rate(record, *record.global_batch_size, *record.samples_per_second, 0);
    }
    record.mean_of = mean_of_gap(block_gaps_.measure(record));
    if (blocks_.size() < k_max_blocks) blocks_.push_back(record);
  }

  // The optimizer step of an entry, from its metadata and the batch.
  std::optional<int64_t> step_number(const Json& metadata, LogBuilder& log, bool is_step) {
    const Figure samples = json_figure(metadata, "samples_count"), counted = json_figure(metadata, "step");
    const auto batch = static_cast<double>(log.facts().global_batch_size.value_or(0));
    const auto sequence = static_cast<double>(log.facts().sequence_length.value_or(0));
    if (std::exchange(unit_batch_, batch) != batch) unit_ = CountedAs::undecided;  // another run's
    if (samples && counted) return whole(*counted, CountedAs::steps);
    if (samples && !is_step) return std::nullopt;  // those of the block alone
    if (samples && batch > 0) return whole(*samples / batch, CountedAs::samples);
    if (unit_ == CountedAs::undecided && counted && *counted > 0) unit_ = unit_of(*counted, batch, batch * sequence);
    if (!counted || unit_ == CountedAs::undecided || unit_ == CountedAs::records) {
      if (is_step) unit_ = CountedAs::records;
      return is_step ? std::optional<int64_t>(log.log().records + 1) : std::nullopt;
    }
    const double divisor = unit_ == CountedAs::tokens ? batch * sequence : unit_ == CountedAs::samples ? batch : 1;
    return divisor > 0 && *counted >= divisor ? whole(*counted / divisor, unit_) : std::nullopt;
  }

  static CountedAs unit_of(double counted, double batch, double tokens) {
    if (divides(tokens, counted)) return CountedAs::tokens;
    if (divides(batch, counted)) return CountedAs::samples;
    return batch > 0 ? CountedAs::steps : CountedAs::records;
  }

  std::optional<int64_t> whole(double number, CountedAs unit) {
    if (!(number >= 0 && number < 9e15)) return std::nullopt;
    unit_ = unit;
    return static_cast<int64_t>(std::floor(number));
  }

  void note_unit(LogBuilder& log) const {
    if (log.log().records == 0) return;
    if (unit_ == CountedAs::tokens)
      log.note("the log counts tokens: steps are tokens / (global_batch_size x max_sequence_length)");
    if (unit_ == CountedAs::samples) log.note("the log counts samples: steps are samples / global_batch_size");
    if (unit_ == CountedAs::records) log.note("the log has no step numbers: its records were counted");
  }

  // A run that resumes from a checkpoint has steps before its start.
  void start_clock(const LogLine& line, const MlperfLine& entry, const LogBuilder& log) {
    const auto& settings = log.log().settings;
    const auto checkpoint = settings.find("init_checkpoint_step");
    if (checkpoint != settings.end() && parse_number(checkpoint->second).value_or(0) != 0) return;
    if (entry.seconds) gaps_.start_at(line.rank, 0, entry.seconds);
    block_gaps_.start_at(line.rank, 0, entry.seconds);
  }

  void add_evaluation(const LogLine& line, const MlperfLine& entry, LogBuilder& log) {
    LogEvent event{EventKind::evaluation, line.number, line.rank, log.last_step(), {}, {}, "eval_accuracy"};
    const Figure reached = json_figure(entry.value);
    if (is_loss(log.facts().model.value_or(""))) event.value = reached;
    if (evaluation_start_ && entry.seconds) event.seconds = *entry.seconds - *evaluation_start_;
    evaluation_start_ = {};
    evaluated_since_step_ = true;
    if (reached) event.text = fmt::format("eval_accuracy {}", *reached);
    if (const Figure samples = json_figure(entry.metadata, "samples_count"); samples.finite()) {
      event.text += fmt::format(" at {} samples", *samples);
      const auto batch = log.facts().global_batch_size;
      if (batch && *samples >= static_cast<double>(*batch) && *samples < 9e15)
        event.step = static_cast<int64_t>(*samples) / *batch;
    }
    log.add_event(std::move(event));
  }

  static void stop_run(const LogLine& line, const MlperfLine& entry, LogBuilder& log) {
    const Json* status = entry.metadata.find("status");
    if (status == nullptr || !status->is_string()) return;
    const auto& text = status->text();
    log.set_total("run_stop status", text);
    if (text == "success") return;
    const Json* reason = entry.metadata.find("reason");
    const bool is_told = reason != nullptr && reason->is_string() && !reason->text().empty();
    log.add_event(EventKind::failed, line, "run_stop with status " + text + (is_told ? ": " + reason->text() : ""));
  }

  MlperfRun run_;
  CountedAs unit_ = CountedAs::undecided;
  double unit_batch_ = 0;  // at which it was decided
  GapMeter gaps_, block_gaps_;
  std::vector<ExtractedStep> blocks_;
  std::vector<MlperfLine> waiting_;  // between a run_stop and the next run_start
  Figure evaluation_start_;
  bool evaluated_since_step_ = false;
  int64_t entries_ = 0, broken_ = 0, ranks_ = 0;
};

}  // namespace

Dialect mlperf_dialect() {
  return {.id = "mlperf",
          .title = "MLPerf training (:::MLLOG)",
          .versions = "v3.0 (2023) to v5.1 (2025)",
          .fields = {{"step", "derived: metadata step or samples_count / batch (samples), / sequence length (tokens)"},
                     {"loss", "reduced_train_loss, train_loss"},
                     {"time_seconds", "train_step_time, train_step_timing; else derived from time_ms, throughput"},
                     {"learning_rate", "metadata lr"},
                     {"samples_per_second", "throughput (in the unit of metadata step per second)"},
                     {"tokens", "derived: global_batch_size x max_sequence_length"}},
          .evaluation_in_times = false,
          .anchors = {":::MLLOG", "tracked_stats", "train_loss", "init_start"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<MlperfReader>(); }};
}

}  // namespace tprimat::logs

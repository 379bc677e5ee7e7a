#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "extract/common/expert_settings.h"
#include "extract/dialects/megatron_record.h"
#include "extract/line_cleaner.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

using Flavour = MegatronFlavour;

// Megatron-LM from 2025 on prints a line after the first iteration without restarting its clock, so the second line has
// the mean of both. Time stamps show it: twice the mean less the first is the real time.
bool second_is_mean_of_two(const ExtractedStep& first, const ExtractedStep& second) {
  if (!first.time_seconds.finite() || !second.time_seconds.finite() || !first.unix_time || !second.unix_time)
    return false;
  const double passed = *second.unix_time - *first.unix_time;
  const double implied = 2 * *second.time_seconds - *first.time_seconds;
  const double tolerance = 0.1 * passed + (passed < 1e3 && std::floor(passed) == passed ? 1.0 : 0.05);
  const bool fits = std::abs(implied - passed) < tolerance;
  const bool too_long = *second.time_seconds - passed > tolerance;
  return passed >= 0 && implied > 0 && fits && too_long;
}

class MegatronReader : public LogReader {
 public:
  explicit MegatronReader(Flavour flavour) : flavour_(flavour) {}

  bool read_line(const LogLine& line, LogBuilder& log) override {
    if (!pending_.empty()) return continue_record(line, log);
    std::string_view text = line.text;
    IterationRecord record;
    bool wants_more = false;
    std::string_view before = text;
    int records = 0;
    while (scanner_.scan(line, text, record)) {
      wants_more = text.empty() && !record.closed;  // the rest may be on the next line
      if (wants_more) break;
      add_record(record, log);
      ++records;
      before = text;
    }
    if (wants_more) {
      pending_ = std::string(before);
      pending_line_ = line;
      pieces_ = 1;
    } else if (records == 1) {
      has_original_ = true;
      clocks_found_ = false;
    }
    return wants_more;
  }

  bool read_copy(std::string_view raw, LogBuilder& log) override {
    const auto prefix = LineCleaner::rank_prefix(raw);
    const std::string_view text = raw.substr(prefix.length);
    if (has_original_ && pending_.empty() && begins_alike(text) && is_copy(text)) return log.add_copy(prefix.rank);
    original_.assign(text);  // read_line() comes next and determines whether copies can be recognised
    has_original_ = false;
    return false;
  }

  void finish(LogBuilder& log) override {
    if (!pending_.empty()) flush(log);
    if (zero_norms_ > 0 && zero_norms_ == log.log().records)
      log.note("every gradient norm is printed as 0: the framework did not measure it");
    if (ExtractedStep* second = log.find(2)) {
      if (const ExtractedStep* first = log.find(1); first != nullptr && second_is_mean_of_two(*first, *second)) {
        second->mean_of = 2;
        log.note(fmt::format("the time of step 2 ({:.1f} ms) is the mean of steps 1 and 2, as the time stamps show",
                             *second->time_seconds * 1e3));
      }
    }
  }

  double confidence(const ExtractedLog& log) const override {
    if (log.records == 0) return 0;
    const auto own = static_cast<size_t>(flavour_);
    const int64_t all = std::accumulate(marks_.begin(), marks_.end(), int64_t{0});
    if (flavour_ == Flavour::megatron) return all == 0 ? 0.9 : 0.5;
    return marks_[own] == 0 ? 0.3 : marks_[own] == *std::max_element(marks_.begin(), marks_.end()) ? 0.95 : 0.6;
  }

 private:
  static constexpr int k_max_pieces = 6;

  bool is_record(const LogLine& line) {
    std::string_view text = line.text;
    IterationRecord record;
    return scanner_.scan(line, text, record);
  }

  // No clock stands before the first bar. The next step differs there already, in its number.
  bool begins_alike(std::string_view text) {
    const size_t bar = std::min(original_.find('|'), original_.size());
    if (text.substr(0, bar) != std::string_view(original_).substr(0, bar)) return false;
    if (!std::exchange(clocks_found_, true)) find_clocks();
    return true;
  }

  // The places of the figures that each rank measures for itself, in the line that copies are compared with.
  void find_clocks() {
    clocks_.clear();
    for (const std::string_view key : {"elapsed time per iteration (ms): ", "throughput per GPU (TFLOP/s/GPU): "}) {
      const size_t at = find_text(original_, key);
      const size_t end = at == std::string::npos ? at : original_.find(" |", at + key.size());
      if (end != std::string::npos) clocks_.push_back({at + key.size(), end});
    }
    std::sort(clocks_.begin(), clocks_.end());
    if (clocks_.size() == 2 && clocks_[1].begin < clocks_[0].end) clocks_.clear();  // a malformed line
  }

  // Equal to the original except for the figures of each rank's own clock.
  bool is_copy(std::string_view text) const {
    size_t at = 0, original_at = 0;
    for (const auto& [begin, end] : clocks_) {
      const size_t length = begin - original_at;
      if (text.size() < at + length || std::memcmp(text.data() + at, original_.data() + original_at, length) != 0)
        return false;
      at = text.find(' ', at + length);
      if (at == std::string_view::npos) return false;
      original_at = end;
    }
    return text.substr(at) == std::string_view(original_).substr(original_at);
  }

  // Further lines belong to a wrapped record as long as they make more of it readable.
  bool continue_record(const LogLine& line, LogBuilder& log) {
    if (!is_record(line) && ++pieces_ <= k_max_pieces && append(line.text)) return true;
    flush(log);
    return read_line(line, log);
  }

  int32_t count_fields(std::string_view text) {
    IterationRecord record;
    scanner_.scan(pending_line_, text, record);
    return record.fields;
  }

  // A terminal cuts between words or within them, and the blank at the seam may be lost: of both ways to join, the one
  // that makes more of the record readable.
  bool append(std::string_view piece) {
    const std::string joined = pending_ + std::string(piece), spaced = pending_ + " " + std::string(piece);
    const int32_t fields = count_fields(pending_), of_joined = count_fields(joined), of_spaced = count_fields(spaced);
    if (std::max(of_joined, of_spaced) <= fields) return false;
    pending_ = of_joined > of_spaced ? joined : spaced;
    return true;
  }

  void flush(LogBuilder& log) {
    std::string_view text = pending_;
    IterationRecord record;
    if (scanner_.scan(pending_line_, text, record)) add_record(record, log);
    pending_.clear();
  }

  void add_record(IterationRecord& record, LogBuilder& log) {
    if (record.fields == 0) return;  // text that only looks like a record
    for (size_t i = 0; i < k_megatron_flavours; ++i) marks_[i] += record.marks[i];
    ExtractedStep& step = record.step;
    if (!record.has_loss && record.other_loss) {
      step.loss = record.other_loss;
      record.has_loss = true;
      log.note(fmt::format("the loss is the figure that the log calls \"{}\"", record.other_loss_name));
    }
    if (record.nans > record.skipped)  // Megatron-LM counts NaNs among the updates that it skips
      step.skipped_updates = static_cast<double>(record.nans);
    note_added_losses(record, log);
    step.skipped = record.skipped > 0 && !record.has_loss;
    // Megatron prints a loss only if it is above 0: without one, and without a skipped step, it was NaN.
    if (record.closed && !record.has_loss && !step.skipped && !record.is_cut)
      step.loss = std::numeric_limits<double>::quiet_NaN();
    if (step.grad_norm && *step.grad_norm == 0) ++zero_norms_;
    if (record.sequence_length && step.global_batch_size.finite())
      step.tokens = static_cast<double>(*record.sequence_length) * *step.global_batch_size;
    if (record.total_steps) log.facts().max_steps = record.total_steps;
    log.facts().state_total(record.total_steps, step.line);
    if (record.sequence_length && *record.sequence_length > 0) log.facts().sequence_length = record.sequence_length;
    for (size_t i = 0; i < record.memory_count; ++i) {
      const auto& memory = record.memory[i];
      log.add_memory(memory.rank >= 0 ? memory.rank : step.rank, memory.kind, memory.gb);
    }
    note_events(record, log);
    log.add(step);
  }

  // The settings are found once; records are many.
  void note_added_losses(const IterationRecord& record, LogBuilder& log) {
    if (record.prints_layer_mean && !std::exchange(notes_layer_mean_, true)) log.set(k_layer_mean_loss, k_printed);
    if (record.prints_added_loss && !std::exchange(notes_added_loss_, true)) log.set(k_added_loss, k_printed);
    if (record.step.z_loss && !std::exchange(notes_z_loss_, true)) log.set(k_layer_mean_z_loss, k_printed);
    if (record.prediction_layers > 0 && !std::exchange(notes_prediction_, true))
      log.set("mtp_num_layers", std::to_string(record.prediction_layers));
  }

  static void note_events(const IterationRecord& record, LogBuilder& log) {
    LogEvent event{EventKind::skipped_update, record.step.line, record.step.rank, record.step.step, {}, {}, {}};
    if (const int64_t skipped = std::max(record.skipped, record.nans); skipped > 0) {
      if (skipped > 1) event.value = static_cast<double>(skipped);
      event.text = fmt::format("{} update{} skipped{}", skipped, skipped == 1 ? "" : "s",
                               record.nans > 0 ? ": the loss is not a number" : "");
      log.add_event(event);
    }
    const bool nan_norm = record.step.grad_norm && std::isnan(*record.step.grad_norm);
    if (record.nans == 0 && !nan_norm && !(record.step.loss && std::isnan(*record.step.loss))) return;
    event.kind = EventKind::nan, event.value = {};
    event.text = nan_norm ? "the gradient norm is not a number" : "the loss is not a number";
    log.add_event(event);
  }

  Flavour flavour_;
  IterationScanner scanner_;
  std::array<int64_t, k_megatron_flavours> marks_{};
  int64_t zero_norms_ = 0;
  bool notes_layer_mean_ = false, notes_added_loss_ = false, notes_z_loss_ = false, notes_prediction_ = false;
  std::string pending_;
  std::string original_;  // the line without its rank, for comparison with copies
  struct Span {
    size_t begin = 0, end = 0;
    auto operator<=>(const Span&) const = default;
  };
  std::vector<Span> clocks_;
  bool has_original_ = false, clocks_found_ = false;
  LogLine pending_line_;
  int pieces_ = 0;
};

}  // namespace

std::unique_ptr<LogReader> make_megatron_reader(MegatronFlavour flavour) {
  return std::make_unique<MegatronReader>(flavour);
}

std::vector<FieldNote> megatron_fields() {
  return {{"step", "iteration n/N"},
          {"time_seconds", "elapsed time per iteration (ms) or (s); a mean over the log interval"},
          {"loss", "lm loss; absent on a complete line means NaN"},
          {"learning_rate", "learning rate"},
          {"grad_norm", "grad norm"},
          {"loss_scale", "loss scale; -1 means none"},
          {"global_batch_size", "global batch size, batch size"},
          {"samples_seen", "consumed samples"},
          {"tflops_per_gpu", "throughput per GPU (TFLOP/s/GPU): the framework's own formula"},
          {"power_watts_per_gpu", "power per GPU (W/GPU)"},
          {"energy_joules_per_gpu", "energy per GPU (J/iter/GPU)"},
          {"aux_loss", "load_balancing_loss, seq_ and global_load_balancing_loss: mean of the layers, no coefficient"},
          {"z_loss", "z_loss: mean of the layers, no coefficient"}};
}

Dialect megatron_dialect() {
  return {.id = "megatron",
          .title = "Megatron-LM",
          .versions = "2021 to core 0.16 (2026)",
          .framework = Framework::mega,
          .fields = megatron_fields(),
          .anchors = {"iteration "},
          .make_reader = [] { return make_megatron_reader(MegatronFlavour::megatron); }};
}

Dialect megatron_deepspeed_dialect() {
  return {.id = "megatron_deepspeed",
          .title = "Megatron-DeepSpeed",
          .versions = "2021 (lm-loss) to 2023; BLOOM (seconds, TFLOPs)",
          .framework = Framework::mgds,
          .fields = both(megatron_fields(), {{"loss", "lm-loss (2021)"},
                                             {"tokens_seen", "consumed tokens"},
                                             {"aux_loss", "moe loss: as added to the loss"},
                                             {"samples_per_second", "samples per second"},
                                             {"tflops_per_gpu", "TFLOPs"},
                                             {"tokens_per_second_per_gpu", "tokens per gpu per second (tgs)"},
                                             {"tokens", "derived: actual seqlen x global batch size"}}),
          .anchors = {"iteration "},
          .make_reader = [] { return make_megatron_reader(MegatronFlavour::megatron_deepspeed); }};
}

Dialect gpt_neox_dialect() {
  return {.id = "gpt_neox",
          .title = "GPT-NeoX",
          .versions = "2.0 (2023)",
          .fields = both(megatron_fields(), {{"loss", "lm_loss"},
                                             {"samples_per_second", "samples/sec, before the record"},
                                             {"tflops_per_gpu", "approx flops per GPU (TFLOPS)"}}),
          .anchors = {"iteration "},
          .make_reader = [] { return make_megatron_reader(MegatronFlavour::gpt_neox); }};
}

Dialect primus_dialect() {
  return {
      .id = "primus",
      .title = "AMD Primus, Megatron back end",
      .versions = "August 2025 to May 2026",
      .framework = Framework::prim,
      .fields = both(megatron_fields(),
                     {{"time_seconds", "of \"instant/average\" pairs the instant"},
                      {"tokens_per_second_per_gpu", "tokens per GPU (tokens/s/GPU), tokens/s/GPU inst/harmonic mean"},
                      {"tflops_per_gpu", "compute per GPU (TFLOP/s/GPU) (2026)"},
                      {"memory_used_gb",
                       "hip mem usage, rocm mem usage, rank-k rocm max mem usage: of the device; GB is 1024^3"}}),
      .anchors = {"iteration "},
      .make_reader = [] { return make_megatron_reader(MegatronFlavour::primus); }};
}

}  // namespace tprimat::logs

#include <algorithm>

#include "extract/common/cause_log.h"
#include "extract/common/log_words.h"
#include "extract/dialects.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

constexpr int64_t k_longest_pause = 5000;  // lines from its first word to its last

std::optional<int64_t> step_named_after(std::string_view text, std::string_view key) {
  const auto step = whole_after(text, key);
  return step && *step >= 0 ? step : std::nullopt;
}

// Megatron's timers: "evaluate ....: (1970.23, 1970.28)", least and most over the ranks, or "evaluate: 1970.23"; ms.
Figure timer_seconds(std::string_view text, std::string_view name) {
  if (!skip_past(text, name)) return {};
  const size_t start = text.find_first_not_of(" .:(");
  if (start == std::string_view::npos || !contains(text.substr(0, start), ":")) return {};
  text.remove_prefix(start);
  const Figure least = take_number(text);
  if (!least.finite() || *least < 0) return {};
  if (!text.starts_with(", ")) return *least / 1e3;
  const Figure most = parse_number(text.substr(2));
  return most.finite() && *most >= 0 ? Figure(*most / 1e3) : Figure();
}

// One evaluation or checkpoint that several lines report: its start, duration and result.
class Pause {
 public:
  explicit Pause(EventKind kind) : kind_(kind) {}

  // The event that a line adds a figure to: the current one, or a new one if that has the figure, or one printed later.
  LogEvent* find(Figure LogEvent::*figure, const LogLine& line, LogBuilder& log) {
    LogEvent* current = under_way(line, log);
    return current != nullptr && !(current->*figure) && !current->value ? current : begin(line, log);
  }

  // The event of a line that reports only its start or end, and perhaps its step: the current one, unless that has
  // another step or is complete.
  LogEvent* find(std::optional<int64_t> step, const LogLine& line, LogBuilder& log) {
    LogEvent* current = under_way(line, log);
    const bool same = current != nullptr && !current->seconds && !current->value && agrees(*current, step, line);
    if (!same) current = begin(line, log);
    if (current == nullptr) return nullptr;
    if (same && line.rank != current->rank) add_report(*current, line.rank, line.number);
    if (step) current->step = *step;
    is_named_ |= step.has_value();
    return current;
  }

 private:
  // A line without a step belongs to the same event if another rank prints it, or the same rank directly after.
  bool agrees(const LogEvent& current, std::optional<int64_t> step, const LogLine& line) const {
    if (step) return !is_named_ || current.step == *step;
    const int64_t distance = line.number - std::max(current.line, current.last_line);
    return distance <= (line.rank != current.rank ? 300 : 20);
  }

  LogEvent* under_way(const LogLine& line, LogBuilder& log) {
    if (!index_ || *index_ >= log.events().size()) return nullptr;
    LogEvent& event = log.events()[*index_];
    return line.number - event.line <= k_longest_pause ? &event : nullptr;
  }

  LogEvent* begin(const LogLine& line, LogBuilder& log) {
    const size_t count = log.events().size();
    std::string_view text = line.text;
    if (text.starts_with("[NeMo ")) skip_past(text, "] ");
    log.add_event(make_event(kind_, line, text));
    index_ = log.events().size() > count ? std::optional(count) : std::nullopt;
    is_named_ = false;
    return index_ ? &log.events()[*index_] : nullptr;
  }

  EventKind kind_;
  std::optional<size_t> index_;
  bool is_named_ = false;  // a line names its step
};

class PausesReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = line.text;
    if (looks_like_source(text) && !contains(text, ".: (")) return false;
    if (contains(text, "heckpoint")) {
      read_checkpoint(line, log);
    } else if (contains(text, "verflow.") || contains(text, "OVERFLOW!")) {
      read_overflow(line, log);
    } else {
      read_evaluation(line, log);
    }
    return false;
  }

 private:
  void read_checkpoint(const LogLine& line, LogBuilder& log) {
    const std::string_view text = line.text;
    if (contains(text, "save-checkpoint")) {
      const Figure seconds = timer_seconds(text, "save-checkpoint");
      if (!seconds) return;
      if (LogEvent* event = checkpoint_.find(&LogEvent::seconds, line, log)) event->seconds = seconds;
    } else if (contains(text, "inished saving the checkpoint in ")) {  // torchtitan
      const Figure seconds = number_after(text, "inished saving the checkpoint in ");
      LogEvent* event = checkpoint_.find(&LogEvent::seconds, line, log);
      if (event != nullptr && seconds.finite()) event->seconds = seconds;
    } else {
      read_checkpoint_step(line, log);
    }
  }

  void read_checkpoint_step(const LogLine& line, LogBuilder& log) {
    const std::string_view text = line.text;
    std::optional<int64_t> step;
    for (const std::string_view key :
         {"checkpoint at iteration ", "checkpoint save for step ", "/checkpoint-", "/global_step"})
      if (!step) step = step_named_after(text, key);
    const bool scheduled = contains(text, "cheduled async checkpoint save");
    if (step || scheduled || contains(text, "aving the checkpoint") || contains(text, "aving model checkpoint"))
      checkpoint_.find(step, line, log);
  }

  // DeepSpeed prints it on every rank, or on the first only: only the first reporting rank counts.
  void read_overflow(const LogLine& line, LogBuilder& log) {
    const auto named = step_named_after(line.text, "OVERFLOW! Rank ");
    const int64_t rank = named.value_or(line.rank);
    if (overflow_rank_ == -2) overflow_rank_ = rank;
    if (rank != overflow_rank_ || !contains(line.text, "kipping step")) return;
    const size_t at = std::min(line.text.find("OVERFLOW!"), line.text.find("radient overflow"));
    log.add_event(EventKind::skipped_update, line, quote_text(line.text.substr(at == std::string_view::npos ? 0 : at)));
  }

  void read_evaluation(const LogLine& line, LogBuilder& log) {
    const std::string_view text = line.text;
    if (contains(text, "loss value:")) {  // " validation loss at iteration 100 on test set | lm loss value: 8.7E+00 |"
      if (!contains(text, "valid") && !contains(text, "test")) return;
      LogEvent* event = evaluation_.find(&LogEvent::value, line, log);
      if (event == nullptr) return;
      event->value = number_after(text, "loss value:");
      event->text = quote_text(text.substr(0, text.find(" |")));
      if (const auto step = step_named_after(text, "at iteration ")) event->step = *step;
    } else if (const Figure seconds = timer_seconds(text, "evaluate"); seconds) {
      if (LogEvent* event = evaluation_.find(&LogEvent::seconds, line, log)) event->seconds = seconds;
    } else if (step_named_after(text, "Evaluating iter ").value_or(0) == 1) {
      evaluation_.find(std::nullopt, line, log);
    }
  }

  Pause checkpoint_{EventKind::checkpoint}, evaluation_{EventKind::evaluation};
  int64_t overflow_rank_ = -2;  // none yet
};

}  // namespace

Dialect pauses_reader() {
  return {.id = "pauses",
          .title = "evaluations, checkpoints, updates left out",
          .versions = "Megatron-LM, DeepSpeed, GPT-NeoX, NeMo 2, HF Trainer, torchtitan",
          .anchors = {"aving checkpoint at", "saved checkpoint", "aving model checkpoint", "aving the checkpoint",
                      "save-checkpoint", "checkpoint save for", "loss value:", "evaluate .",
                      "evaluate:", "Evaluating iter 1/", "OVERFLOW!", "radient overflow"},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<PausesReader>(); }};
}

}  // namespace tprimat::logs

#include <string>

#include "extract/dialect.h"
#include "extract/dialects/log_facts.h"
#include "extract/dialects/step_gap.h"
#include "extract/scan_text.h"

namespace tprimat::logs {
namespace {

class NativeReader : public LogReader {
 public:
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const std::string_view text = line.text;
    if (contains(text, "iteration ") && contains(text, "| tokens per second:")) {
      add_step(line, log);
    } else if (text.substr(0, 6) == "model " && contains(text, "| threads ")) {
      read_summary(line, log);
    } else if (text.substr(0, 10) == "kernels | ") {
      if (const auto attention = text_between(text, "attention ", " |"))
        log.set("attention", std::string(trim(*attention)));
    }
    return false;
  }

  double confidence(const ExtractedLog& log) const override {
    return log.records > 0 ? summaries_ > 0 ? 0.99 : 0.93 : summaries_ > 0 ? 0.6 : 0;
  }

 private:
  // Like Megatron-LM's record, plus "tokens per second".
  static void add_step(const LogLine& line, LogBuilder& log) {
    std::string_view text = line.text;
    skip_past(text, "iteration ");
    const auto step = parse_whole(text.substr(0, text.find('/')));
    if (!step || *step < 0) return;
    const auto total = count_after(text, "/");
    keep_first(log.facts().max_steps, total);
    log.facts().state_total(total, line.number);
    ExtractedStep record = LogBuilder::start_step(line, *step);
    set_printed_time(record, *number_after(text, "elapsed time per iteration (ms):") / 1e3);
    record.samples_seen = number_after(text, "consumed samples:");
    record.tokens_per_second = number_after(text, "tokens per second:");
    record.learning_rate = number_after(text, "learning rate:");
    record.global_batch_size = number_after(text, "global batch size:");
    record.loss = number_after(text, "lm loss:");
    record.loss_scale = number_after(text, "loss scale:");
    record.grad_norm = number_after(text, "grad norm:");
    record.skipped_updates = 0;
    if (contains(text, "number of skipped iterations:")) leave_out(line, record, log);
    keep_first(log.facts().global_batch_size, count_after(text, "global batch size:"));
    log.add(record);
  }

  // The gradients of an overflow are not finite and are discarded.
  static void leave_out(const LogLine& line, ExtractedStep& record, LogBuilder& log) {
    record.skipped = true;
    record.skipped_updates = 1;
    if (!record.grad_norm.finite()) record.grad_norm = {};
    log.add_event({EventKind::skipped_update, line.number, line.rank, record.step, {}, {}, "1 update skipped"});
  }

  // "model gpt2_124m | parameters 124439808 | precision fp32 | threads 8 | allocated 2.123 GB"; on a GPU its name
  // behind the threads: "| device NVIDIA H200 |"
  void read_summary(const LogLine& line, LogBuilder& log) {
    ++summaries_;
    const std::string_view text = line.text;
    LoggedFacts& facts = log.facts();
    if (const auto name = text_between(text, "model ", " |")) keep_first(facts.model, std::string(trim(*name)));
    keep_first(facts.parameters, count_after(text, "parameters "));
    if (const auto precision = text_between(text, "precision ", " |"))
      keep_first(facts.precision, precision_named(*precision));
    if (const auto threads = text_between(text, "threads ", " |")) log.set("threads", std::string(trim(*threads)));
    if (const auto device = text_between(text, "| device ", " |")) log.set("device", std::string(trim(*device)));
    log.add_memory(line.rank, MemoryKind::allocated, *gb_after(text, "allocated "));
  }

  int64_t summaries_ = 0;
};

}  // namespace

Dialect native_dialect() {
  return {.id = "native",
          .title = "our native trainer, console",
          .versions = "all",
          .framework = Framework::native,
          .fields = {{"step", "iteration n/total"},
                     {"time_seconds", "elapsed time per iteration (ms)"},
                     {"loss", "lm loss"},
                     {"learning_rate", "learning rate"},
                     {"grad_norm", "grad norm"},
                     {"loss_scale", "loss scale"},
                     {"skipped", "number of skipped iterations"},
                     {"tokens_per_second", "tokens per second"},
                     {"global_batch_size", "global batch size"},
                     {"samples_seen", "consumed samples"}},
          .evaluation_in_times = false,
          .anchors = {"| tokens per second:", "| threads ", "kernels | "},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<NativeReader>(); }};
}

}  // namespace tprimat::logs

#include "result/step_record.h"

#include <string>

#include "extract/dialect.h"
#include "extract/dialects/step_gap.h"

namespace tprimat::logs {
namespace {

constexpr int64_t k_last_step = int64_t{1} << 53;

Figure figure(const std::optional<double>& value) { return value ? Figure(*value) : Figure(); }

class StepFileReader : public LogReader {
 public:
  // {"step":1,"time_seconds":0.51,"loss":10.8,"tokens":4096}
  bool read_line(const LogLine& line, LogBuilder& log) override {
    const size_t start = line.text.find_first_not_of(" \t");
    if (start == std::string_view::npos || line.text[start] != '{') return false;
    const auto parsed = parse_step_record(std::string(line.text.substr(start)));
    if (!parsed || parsed->step < 0 || parsed->step > k_last_step) return false;
    ExtractedStep record = LogBuilder::start_step(line, parsed->step);
    set_printed_time(record, parsed->time_seconds);  // a null is read as NaN
    record.loss = figure(parsed->loss);
    record.learning_rate = figure(parsed->learning_rate);
    record.grad_norm = figure(parsed->grad_norm);
    record.loss_scale = figure(parsed->loss_scale);
    record.expert_load = figure(parsed->expert_load);
    record.dropped_share = figure(parsed->dropped_share);
    record.aux_loss = figure(parsed->aux_loss);
    record.z_loss = figure(parsed->z_loss);
    if (parsed->skipped) record.skipped_updates = *parsed->skipped ? 1 : 0;
    if (parsed->skipped.value_or(false)) leave_out(line, record, log);
    if (parsed->tokens) record.tokens = static_cast<double>(*parsed->tokens);
    if (parsed->unix_time) record.unix_time = *parsed->unix_time;
    add_memory(*parsed, record, log);
    log.add(record);
    return false;
  }

  double confidence(const ExtractedLog& log) const override { return log.records > 0 ? 0.97 : 0; }

 private:
  // The gradients of an overflow are not finite and are discarded.
  static void leave_out(const LogLine& line, ExtractedStep& record, LogBuilder& log) {
    record.skipped = true;
    if (!record.grad_norm.finite()) record.grad_norm = {};
    log.add_event({EventKind::skipped_update, line.number, line.rank, record.step, {}, {}, "1 update skipped"});
  }

  static void add_memory(const StepRecord& parsed, ExtractedStep& record, LogBuilder& log) {
    record.memory_allocated_gb = figure(parsed.memory_allocated_gb);
    record.memory_reserved_gb = figure(parsed.memory_reserved_gb);
    if (parsed.memory_allocated_gb) log.add_memory(record.rank, MemoryKind::allocated, *parsed.memory_allocated_gb);
    if (parsed.memory_reserved_gb) log.add_memory(record.rank, MemoryKind::reserved, *parsed.memory_reserved_gb);
  }
};

}  // namespace

Dialect steps_dialect() {
  return {.id = "steps",
          .title = "step records of our trainer and adapters (JSON lines)",
          .versions = "schema version 1",
          .fields = {{"step", "step"},
                     {"time_seconds", "time_seconds"},
                     {"loss", "loss; null is NaN"},
                     {"learning_rate", "learning_rate"},
                     {"grad_norm", "grad_norm"},
                     {"loss_scale", "loss_scale"},
                     {"skipped", "skipped"},
                     {"tokens", "tokens"},
                     {"memory_allocated_gb", "memory_allocated_gb"},
                     {"memory_reserved_gb", "memory_reserved_gb"},
                     {"expert_load", "expert_load"},
                     {"dropped_share", "dropped_share"},
                     {"aux_loss", "aux_loss"},
                     {"z_loss", "z_loss"},
                     {"unix_time", "unix_time"}},
          .anchors = {"\"time_seconds\""},
          .make_reader = []() -> std::unique_ptr<LogReader> { return std::make_unique<StepFileReader>(); }};
}

}  // namespace tprimat::logs

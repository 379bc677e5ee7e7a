#include "program/step_output.h"

#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/output.h"
#include "command_line/session.h"
#include "train/kernel_notes.h"
#include "train/log_line.h"

namespace tprimat::engine {

StepOutput::StepOutput(const TrainSpec& spec, const std::string& tensorboard, int64_t first_step) : spec_(spec) {
  if (const char* path = std::getenv("TPRIMAT_STEPS")) open_steps_file(path, first_step);
  if (tensorboard.empty()) return;
  const auto resumed = first_step > 1 ? std::optional<int64_t>(first_step) : std::nullopt;
  events_.emplace(tensorboard, unix_time_seconds(), resumed);
}

void StepOutput::show(const StepRecord& record) {
  print_result(render_log_line(record, spec_) + "\n");
  if (record.validation_loss) print_result(render_validation_line(record) + "\n");
  flush_stdout();
  if (steps_file_) steps_file_->write_line(step_record_to_line(record));
  if (events_) write_events(record);
}

// A resumed training keeps the records of the steps before; later ones are made again.
void StepOutput::open_steps_file(const std::string& path, int64_t first_step) {
  const std::vector<StepRecord> earlier = first_step > 1 ? read_step_records(path) : std::vector<StepRecord>();
  steps_file_.emplace(path);
  for (const StepRecord& record : earlier)
    if (record.step < first_step) steps_file_->write_line(step_record_to_line(record));
}

void StepOutput::write_events(const StepRecord& record) {
  std::vector<EventScalar> scalars{{"train/seconds_per_step", record.time_seconds}};
  const auto add = [&](std::string_view tag, const std::optional<double>& value) {
    if (value) scalars.push_back({tag, *value});
  };
  add("train/loss", record.loss);
  add("train/learning_rate", record.learning_rate);
  add("train/grad_norm", record.grad_norm);
  add("train/loss_scale", record.loss_scale);
  add("validation/loss", record.validation_loss);
  scalars.push_back({"train/tokens_per_second", static_cast<double>(spec_.tokens_per_step()) / record.time_seconds});
  events_->write_step(record.step, record.unix_time.value_or(unix_time_seconds()), scalars);
}

void KernelNotes::note(int64_t step) {
  if (report_ == nullptr) return;
  const bool first = step == first_step_;
  for (const std::string& warning :
       first ? take_shared_warnings(*report_, world_) : take_own_warnings(*report_, world_))
    log_warning(warning);
  if (!first || world_.rank() != 0) return;
  if (const std::string line = render_kernel_line(*report_); !line.empty()) print_result(line + "\n");
}

}  // namespace tprimat::engine

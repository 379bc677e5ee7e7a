#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/fields.h"

namespace tprimat {

// One optimizer update as it was measured. Whatever trains writes one per line, as JSON, to the file named in
// TPRIMAT_STEPS.
struct StepRecord {
  int64_t step = 0;            // 1 is the first
  double time_seconds = 0.0;   // of this step alone
  std::optional<double> loss;  // mean over the step's tokens, natural log; NaN when the trainer saw one
  std::optional<double> learning_rate;
  std::optional<double> grad_norm;            // global L2 norm before clipping
  std::optional<int64_t> tokens;              // of all ranks
  std::optional<double> memory_allocated_gb;  // allocated by the trainer, GB = 1e9 bytes
  std::optional<double> memory_reserved_gb;   // held by its allocator
  std::optional<double> loss_scale;           // fp16
  std::optional<bool> skipped;                // true: the update was left out (overflow, NaN, spike)
  std::optional<double> validation_loss;      // of an evaluation after the step, nats; its time is not in time_seconds
  std::optional<double> expert_load = {};     // tokens of the fullest expert / mean, averaged over the layers
  std::optional<double> dropped_share = {};   // of the token's expert places, dropped for want of capacity
  std::optional<double> aux_loss = {};        // of the router's balance, as added to the loss: coefficient included
  std::optional<double> z_loss = {};          // of the router's logits, likewise
  std::optional<double> unix_time;            // end of the step, seconds since 1970

  static constexpr auto fields() {
    using S = StepRecord;
    return field_list(
        field("step", &S::step, "number of the step, from 1"),
        field("time_seconds", &S::time_seconds, "duration of the step, s"),
        field("loss", &S::loss, "mean loss over the step's tokens, nats; null is NaN"),
        field("learning_rate", &S::learning_rate, "learning rate of the update"),
        field("grad_norm", &S::grad_norm, "global L2 norm of the gradient before clipping"),
        field("tokens", &S::tokens, "tokens of the step over all ranks"),
        field("memory_allocated_gb", &S::memory_allocated_gb, "memory the trainer allocated, GB"),
        field("memory_reserved_gb", &S::memory_reserved_gb, "memory its allocator holds, GB"),
        field("loss_scale", &S::loss_scale, "loss scale of the step (fp16)"),
        field("skipped", &S::skipped, "the update was left out"),
        field("validation_loss", &S::validation_loss, "loss on the validation split, nats"),
        field("expert_load", &S::expert_load, "tokens of the fullest expert / mean, over the layers"),
        field("dropped_share", &S::dropped_share, "share of the token-expert assignments that were dropped"),
        field("aux_loss", &S::aux_loss, "router's balancing loss, coefficient included"),
        field("z_loss", &S::z_loss, "router z-loss, coefficient included"),
        field("unix_time", &S::unix_time, "end of the step, s since 1970"));
  }
};

std::string step_record_to_line(const StepRecord& record);             // one line of JSON, no newline
std::optional<StepRecord> parse_step_record(const std::string& line);  // nothing for a line that is not one
std::vector<StepRecord> read_step_records(
    const std::string& path);  // an incomplete last line is left out; a missing file gives none

}  // namespace tprimat

#pragma once

#include <cstdint>

#include "text/enum_names.h"

// Facts of a result that are one word of a closed set. Words of other versions read as `other`.
namespace tprimat {

// Where a step's duration comes from: the log prints it, or it is work / reported rate, or the distance of two time
// stamps.
enum class TimeSource : uint8_t { none, printed, from_rate, from_timestamps };
constexpr TimeSource unknown_word(TimeSource) { return TimeSource::none; }

// Three different things, and the peaks of two of them; never compared with each other.
enum class MemoryKind : uint8_t {
  allocated,
  peak_allocated,
  reserved,
  peak_reserved,
  device_used,
  device_total,
  other
};
constexpr MemoryKind unknown_word(MemoryKind) { return MemoryKind::other; }

// Something that a log reports beside its steps. In the order of the names: a result counts them in this order.
enum class EventKind : uint8_t {
  checkpoint,
  collective_timeout,  // NCCL or RCCL watchdog
  device_error,
  evaluation,
  failed,  // a rank ended with an error
  killed,  // a rank ended by a signal
  nan,     // a loss or gradient that is no number
  other,
  out_of_memory,
  restart,         // steps are repeated
  skipped_update,  // overflow: the optimizer left the step out
  timeout,         // the scheduler's or launcher's time was over
};
constexpr EventKind unknown_word(EventKind) { return EventKind::other; }

// Why the time of a step is not that of a training step alone. In the order of the names, as reports list them.
enum class StepLabel : uint8_t { checkpoint, evaluation, mean_of_two, other, other_batch, restart };
constexpr StepLabel unknown_word(StepLabel) { return StepLabel::other; }

// How the end of the warm-up was found; none: it was not looked for.
enum class WarmupMethod : uint8_t { none, change_point, first_step, fixed, other };
constexpr auto enum_table(WarmupMethod) {
  return std::to_array<std::pair<WarmupMethod, std::string_view>>({{WarmupMethod::none, ""},
                                                                   {WarmupMethod::change_point, "change_point"},
                                                                   {WarmupMethod::first_step, "first_step"},
                                                                   {WarmupMethod::fixed, "fixed"},
                                                                   {WarmupMethod::other, "other"}});
}
constexpr WarmupMethod unknown_word(WarmupMethod) { return WarmupMethod::other; }

// The cause of a failed run, for programs; status_reason is for people.
enum class FailureKind : uint8_t {
  out_of_memory,       // of a device
  host_out_of_memory,  // of the machine or its control group
  nan_loss,
  missing_module,
  missing_program,
  disk_full,
  port_in_use,
  no_device,  // there is no GPU, or no driver for it
  no_access,  // to a gated model or a file
  wrong_usage,
  device_error,
  collective_failed,  // NCCL, RCCL, Gloo: timed out, or a peer was gone
  killed,             // by a signal
  hung,               // no more steps
  time_limit,
  ended_by_scheduler,
  steps_missing,
  wrong_work,  // it trained on other tokens than requested, or its figures are impossible
  error        // any other
};

// Tool that records some steps of a training.
enum class Profiler : uint8_t { nsys, rocprofv3, torch, own };

}  // namespace tprimat

#pragma once

#include <cstdint>

#include "text/enum_names.h"

// What a result says by one word of a closed set. A word that another version wrote reads as `other`.
namespace tprimat {

// Where a step's duration comes from: the log prints it, or it is work / reported rate, or the distance of two time
// stamps.
enum class TimeSource : uint8_t { none, printed, from_rate, from_timestamps };
constexpr auto enum_table(TimeSource) {
  return std::to_array<std::pair<TimeSource, std::string_view>>({{TimeSource::none, "none"},
                                                                 {TimeSource::printed, "printed"},
                                                                 {TimeSource::from_rate, "from_rate"},
                                                                 {TimeSource::from_timestamps, "from_timestamps"}});
}
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
constexpr auto enum_table(MemoryKind) {
  return std::to_array<std::pair<MemoryKind, std::string_view>>({{MemoryKind::allocated, "allocated"},
                                                                 {MemoryKind::peak_allocated, "peak_allocated"},
                                                                 {MemoryKind::reserved, "reserved"},
                                                                 {MemoryKind::peak_reserved, "peak_reserved"},
                                                                 {MemoryKind::device_used, "device_used"},
                                                                 {MemoryKind::device_total, "device_total"},
                                                                 {MemoryKind::other, "other"}});
}
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
constexpr auto enum_table(EventKind) {
  return std::to_array<std::pair<EventKind, std::string_view>>({{EventKind::checkpoint, "checkpoint"},
                                                                {EventKind::collective_timeout, "collective_timeout"},
                                                                {EventKind::device_error, "device_error"},
                                                                {EventKind::evaluation, "evaluation"},
                                                                {EventKind::failed, "failed"},
                                                                {EventKind::killed, "killed"},
                                                                {EventKind::nan, "nan"},
                                                                {EventKind::other, "other"},
                                                                {EventKind::out_of_memory, "out_of_memory"},
                                                                {EventKind::restart, "restart"},
                                                                {EventKind::skipped_update, "skipped_update"},
                                                                {EventKind::timeout, "timeout"}});
}
constexpr EventKind unknown_word(EventKind) { return EventKind::other; }

// Why the time of a step is not that of a training step alone. In the order of the names, as reports list them.
enum class StepLabel : uint8_t { checkpoint, evaluation, mean_of_two, other, other_batch, restart };
constexpr auto enum_table(StepLabel) {
  return std::to_array<std::pair<StepLabel, std::string_view>>({{StepLabel::checkpoint, "checkpoint"},
                                                                {StepLabel::evaluation, "evaluation"},
                                                                {StepLabel::mean_of_two, "mean_of_two"},
                                                                {StepLabel::other, "other"},
                                                                {StepLabel::other_batch, "other_batch"},
                                                                {StepLabel::restart, "restart"}});
}
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

}  // namespace tprimat

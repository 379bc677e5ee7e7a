#pragma once

#include <cstdint>

#include "text/enum_names.h"

namespace tprimat {

// What made a run end badly, for a program that reads results; status_reason says it in words.
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
  hung,               // no step came any more
  time_limit,
  ended_by_scheduler,
  steps_missing,
  wrong_work,  // it trained on other tokens than asked for, or its figures are impossible
  error        // any other
};
constexpr auto enum_table(FailureKind) {
  return std::to_array<std::pair<FailureKind, std::string_view>>(
      {{FailureKind::out_of_memory, "out_of_memory"},
       {FailureKind::host_out_of_memory, "host_out_of_memory"},
       {FailureKind::nan_loss, "nan_loss"},
       {FailureKind::missing_module, "missing_module"},
       {FailureKind::missing_program, "missing_program"},
       {FailureKind::disk_full, "disk_full"},
       {FailureKind::port_in_use, "port_in_use"},
       {FailureKind::no_device, "no_device"},
       {FailureKind::no_access, "no_access"},
       {FailureKind::wrong_usage, "wrong_usage"},
       {FailureKind::device_error, "device_error"},
       {FailureKind::collective_failed, "collective_failed"},
       {FailureKind::killed, "killed"},
       {FailureKind::hung, "hung"},
       {FailureKind::time_limit, "time_limit"},
       {FailureKind::ended_by_scheduler, "ended_by_scheduler"},
       {FailureKind::steps_missing, "steps_missing"},
       {FailureKind::wrong_work, "wrong_work"},
       {FailureKind::error, "error"}});
}

}  // namespace tprimat

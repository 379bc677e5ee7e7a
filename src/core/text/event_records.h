#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// The records of a TensorBoard event file: TFRecords of the protocol buffer tensorflow.Event, of version
// "brain.Event:2". Times are seconds since 1970.
namespace tprimat {

// A figure of a step under the name that TensorBoard shows; stored in single precision.
struct EventScalar {
  std::string_view tag;  // "train/loss"
  double value = 0.0;
};

// The record that a file begins with.
std::string make_version_record(double unix_time);

// Makes TensorBoard drop this step and later ones of earlier files in the folder.
std::string make_restart_record(int64_t step, double unix_time);

std::string make_step_record(int64_t step, double unix_time, std::span<const EventScalar> scalars);

}  // namespace tprimat

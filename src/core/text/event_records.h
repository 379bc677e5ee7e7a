#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

// What a TensorBoard event file consists of: TFRecords of the protocol buffer tensorflow.Event, of version
// "brain.Event:2". Times are seconds since 1970.
namespace tprimat {

// A figure of a step under the name that TensorBoard shows; stored in single precision.
struct EventScalar {
  std::string_view tag;  // "train/loss"
  double value = 0.0;
};

// The record that a file begins with.
std::string make_version_record(double unix_time);

// From here on TensorBoard forgets what an earlier file of the folder shows of this step and later ones.
std::string make_restart_record(int64_t step, double unix_time);

std::string make_step_record(int64_t step, double unix_time, std::span<const EventScalar> scalars);

}  // namespace tprimat

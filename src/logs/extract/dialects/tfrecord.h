#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "extract/figure.h"

namespace tprimat::logs {

// TFRecord: u64 length, masked CRC-32C of it, data, masked CRC-32C of the data; all little-endian.
class TfRecords {
 public:
  enum class End { none, clean, cut, corrupt };

  explicit TfRecords(std::string_view file) : rest_(file) {}
  std::optional<std::string_view> next();  // nothing at the end, which end() explains
  End end() const { return end_; }

 private:
  std::string_view rest_;
  End end_ = End::none;
};

// One scalar of a TensorBoard event.
struct TfScalar {
  std::string_view tag;
  Figure value;  // absent for images, histograms, texts
};

struct TfEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string_view summary;  // its values follow with take_scalar
};
std::optional<TfEvent> parse_tf_event(std::string_view message);
std::optional<TfScalar> take_scalar(std::string_view& summary);

}  // namespace tprimat::logs

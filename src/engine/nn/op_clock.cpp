#include "nn/op_clock.h"

namespace tprimat::engine {
namespace {

std::chrono::steady_clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

void OpClock::add(std::string_view name, const OpTotal& total) {
  auto found = totals_.find(name);
  if (found == totals_.end()) found = totals_.emplace(std::string(name), OpTotal{}).first;
  OpTotal& sum = found->second;
  sum.calls += total.calls;
  sum.seconds += total.seconds;
  sum.flops += total.flops;
  sum.bytes += total.bytes;
}

void OpClock::use_device(Accelerator* device) {
  device_ = device;
  step_event_ = device != nullptr ? device->make_event() : nullptr;
}

void OpClock::begin_recording() {
  records_ = true;
  recorded_.clear();
}

void OpClock::begin_step() {
  if (device_ != nullptr) device_->begin_range("step");
  if (step_event_ != nullptr) step_event_->record();
  step_begin_ = std::chrono::steady_clock::now();
}

void OpClock::finish_step() {
  if (device_ != nullptr) device_->end_range();
  for (Span& span : given_) {
    count(span);
    free_.push_back(std::move(span.first));
    free_.push_back(std::move(span.last));
  }
  given_.clear();
  if (replayed_)
    for (const Span& span : recorded_) count(span);
  replayed_ = false;
}

void OpClock::count(const Span& span) {
  const double seconds = span.last->seconds_since(*span.first);
  add(span.name, {1, seconds, span.flops, span.bytes});
  if (!keeps_events_) return;
  const auto begin = step_begin_ + to_duration(span.first->seconds_since(*step_event_));
  events_.push_back({span.name, span.flops > 0, begin, begin + to_duration(seconds)});
}

std::unique_ptr<DeviceEvent> OpClock::mark() {
  std::unique_ptr<DeviceEvent> event;
  if (free_.empty() || records_) {
    event = device_->make_event();
  } else {
    event = std::move(free_.back());
    free_.pop_back();
  }
  event->record();
  return event;
}

OpClock::OpenOp OpClock::open(std::string_view name) {
  if (device_ == nullptr) return {std::chrono::steady_clock::now(), nullptr};
  device_->begin_range(std::string(name));
  return {{}, times_ ? mark() : nullptr};
}

void OpClock::close(OpenOp op, std::string_view name, double flops, double bytes) {
  if (device_ == nullptr) {
    const auto end = std::chrono::steady_clock::now();
    add(name, {1, std::chrono::duration<double>(end - op.begin).count(), flops, bytes});
    if (keeps_events_) events_.push_back({std::string(name), flops > 0, op.begin, end});
    return;
  }
  if (times_) (records_ ? recorded_ : given_).push_back({std::string(name), flops, bytes, std::move(op.first), mark()});
  device_->end_range();
}

}  // namespace tprimat::engine

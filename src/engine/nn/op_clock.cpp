#include "nn/op_clock.h"

namespace tprimat::engine {
namespace {

std::chrono::steady_clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

bool counts(OpKind kind) { return kind == OpKind::operation || kind == OpKind::product; }  // else it is within another

// The head's loss and gradients are made as soon as its forward pass is done; a layer's forward pass within its
// backward one is done again.
OpPhase phase_of(const OpScope& scope, std::string_view name) {
  const auto names = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (scope.phase == OpPhase::forward && names("backward")) return OpPhase::backward;
  if (scope.phase == OpPhase::backward && names("forward")) return OpPhase::recompute;
  return scope.phase;
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
  const OpEvent& event = span.event;
  if (counts(event.kind)) add(event.name, {1, seconds, event.work.flops, event.work.bytes});
  if (!keeps_events_) return;
  events_.push_back(event);
  events_.back().begin = step_begin_ + to_duration(span.first->seconds_since(*step_event_));
  events_.back().end = events_.back().begin + to_duration(seconds);
}

OpEvent OpClock::describe(const Call& call) const {
  OpEvent event{std::string(call.name), call.kind, scope, call.work, call.group, {}, {}};
  if (call.kind != OpKind::range) event.scope.phase = phase_of(scope, call.name);
  return event;
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
  if (device_ != nullptr) device_->begin_range(std::string(name));
  return mark_begin();
}

OpClock::OpenOp OpClock::mark_begin() {
  if (device_ == nullptr) return {std::chrono::steady_clock::now(), nullptr};
  return {{}, times_ ? mark() : nullptr};
}

void OpClock::close(OpenOp op, const Call& call) {
  ++calls_;
  if (device_ == nullptr) {
    const auto end = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(end - op.begin).count();
    if (counts(call.kind)) add(call.name, {1, seconds, call.work.flops, call.work.bytes});
    if (keeps_events_) {
      events_.push_back(describe(call));
      events_.back().begin = op.begin, events_.back().end = end;
    }
    if (after_each_ && counts(call.kind)) after_each_(seconds);
    return;
  }
  if (times_) (records_ ? recorded_ : given_).push_back({describe(call), std::move(op.first), mark()});
  if (call.kind != OpKind::collective) device_->end_range();
}

}  // namespace tprimat::engine
